"""Many small pieces of bytes joined into one buffer, by columns: integers in variable length, and bytes that lie elsewhere.

A column has one piece for each row. Arrow's views stand for pieces, and Arrow copies them all at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Final, NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from headrace.kafka.batches.varints import INLINE_BYTES, VIEW, Int64Array

UInt64s = NDArray[np.uint64]
"""One number for each row, or a single one for all: numpy warns of what wraps around in a scalar."""

Views = NDArray[np.uint64]
"""The pieces of a column: Arrow's views, two words for each row, or for all of them."""

Column: TypeAlias = "pa.BinaryArray | pa.ChunkedArray"
"""Bytes, or null, in each row."""

_BITS_OF_BYTE: Final = 8
_BITS: Final = np.uint64(7)
_LOW_BITS: Final = np.uint64(0x7F)
WORD_BYTES: Final = 8
_WORD_BITS: Final = np.uint64(64)
_HALF_WORD: Final = np.uint64(32)
# Sizes and numbers of rows within a batch are seldom larger; both columns of the table stay in a processor's cache.
_TABLED: Final = 1 << 14
# How far after the beginning of its buffer a piece may begin, for a view to tell it.
_FARTHEST: Final = (1 << 31) - 1


class Codes(NamedTuple):
    """Bytes for each row, at most *longest*, in two words, the lowest first; *widths* says how many they are."""

    low: UInt64s
    high: UInt64s
    widths: UInt64s
    longest: int


def width(number: int) -> int:
    """How many bytes the integer *number* has in variable length."""
    return max(1, -(-_zigzag(number).bit_length() // 7))


def scalar_code(number: int) -> bytes:
    """The bytes of *number* in variable length."""
    rest, found = _zigzag(number), bytearray()
    while rest > int(_LOW_BITS):
        found.append(rest & int(_LOW_BITS) | int(_LOW_BITS) + 1)
        rest >>= 7
    return bytes(found) + bytes([rest])


def _zigzag(number: int) -> int:
    return (number << 1) ^ (number >> 63)


def coded(numbers: Int64Array) -> Codes:
    """Integers in variable length, zigzag coded, for one row or more; or one integer for all rows."""
    least, most = int(numbers.min()), int(numbers.max())
    if least == most:
        return _computed(numbers[:1])
    if least < -1 or most >= _TABLED:
        return _computed(numbers)
    low, widths = _table()
    at = numbers + 1
    return Codes(low[at], np.zeros(1, np.uint64), widths[at], width(most))


@cache
def _table() -> tuple[UInt64s, UInt64s]:
    """The codes of -1 and the first numbers from 0 on, and their widths."""
    codes = _computed(np.arange(-1, _TABLED))
    return codes.low, codes.widths


def _computed(numbers: Int64Array) -> Codes:
    rest = ((numbers << 1) ^ (numbers >> 63)).astype(np.uint64)
    longest = max(1, -(-int(rest.max()).bit_length() // 7))
    words: list[UInt64s] = []
    widths: UInt64s = np.ones(1, np.uint64)
    for begin in (0, WORD_BYTES):
        word: UInt64s = np.zeros(1, np.uint64)
        for index in range(begin, min(longest, begin + WORD_BYTES)):
            place = np.uint64(_BITS_OF_BYTE * (index - begin))
            word = word | ((rest & _LOW_BITS) << place)
            rest = rest >> _BITS
            if index + 1 < longest:
                more = (rest != 0).astype(np.uint64)
                word |= more << (place + _BITS)
                widths = widths + more
        words.append(word)
    return Codes(words[0], words[1], widths, longest)


NOTHING: Final = Codes(np.zeros(1, np.uint64), np.zeros(1, np.uint64), np.zeros(1, np.uint64), 0)
"""No bytes in any row."""

ZERO: Final = NOTHING._replace(widths=np.ones(1, np.uint64), longest=1)
"""The byte 0 in each row."""


def octets_code(octets: bytes) -> Codes:
    """The same *octets* in each row, a word at most."""
    size = len(octets)
    return NOTHING._replace(
        low=np.array([int.from_bytes(octets, "little")], np.uint64),
        widths=np.array([size], np.uint64),
        longest=size,
    )


def inline(codes: Sequence[Codes]) -> list[Views]:
    """Columns of pieces with the bytes of *codes* one after the other: one column where they fit into a view, or more."""
    found: list[Views] = []
    packed = NOTHING
    for each in _merged(codes):
        fits = each.longest <= WORD_BYTES and packed.longest + each.longest <= INLINE_BYTES
        if not fits and packed.longest:
            found.append(_inline_views(packed))
            packed = NOTHING
        packed = _after(packed, each) if packed.longest else each
    return [*found, _inline_views(packed)]


def _merged(codes: Sequence[Codes]) -> list[Codes]:
    """*codes*, those together that are the same in all rows: they cost as much as one row does."""
    found: list[Codes] = []
    for each in codes:
        before = found[-1] if found else None
        if (
            before is not None
            and len(before.widths) == len(each.widths) == 1
            and before.longest + each.longest <= WORD_BYTES
        ):
            found[-1] = _after(before, each)
        else:
            found.append(each)
    return found


def _after(before: Codes, codes: Codes) -> Codes:
    shift = before.widths << np.uint64(3)
    high = before.high
    if before.longest + codes.longest > WORD_BYTES:
        # What is shifted by a whole word or more is 0, also by what is "negative" here.
        high = high | (codes.low >> (_WORD_BITS - shift))
        if before.longest >= WORD_BYTES:
            high = high | (codes.low << (shift - _WORD_BITS))
    return Codes(
        before.low | (codes.low << shift),
        high,
        before.widths + codes.widths,
        before.longest + codes.longest,
    )


def _inline_views(codes: Codes) -> Views:
    first = codes.widths | (codes.low << _HALF_WORD)
    views = np.empty((max(len(first), len(codes.high)), 2), np.uint64)
    views[:, 0] = first
    views[:, 1] = (codes.low >> _HALF_WORD) | (codes.high << _HALF_WORD)
    return views


def whole(views: Views) -> NDArray[np.complex128]:
    """*views* with one element for each: numpy copies these several times as fast as pairs of words."""
    return views.view(np.complex128)[..., 0]


def same_view(piece: bytes, buffers: list[object]) -> Views:
    """The same *piece* for all rows; unless it is short, it is added to *buffers*."""
    view = np.zeros(1, VIEW)
    view["size"] = len(piece)
    if len(piece) <= INLINE_BYTES:
        inside = len(piece).to_bytes(4, "little") + piece.ljust(INLINE_BYTES, b"\0")
        return np.frombuffer(inside, "<u8").astype(np.uint64)
    view["prefix"] = np.frombuffer(piece[:4], "<i4")
    view["buffer"] = len(buffers)
    buffers.append(piece)
    return view.view(np.uint64)


class Pieces(NamedTuple):
    """A column of bytes: the *sizes* of its rows, -1 for null, *views* of them, and the *buffers* in which those that are not short lie."""

    sizes: Int64Array
    views: Views
    buffers: Sequence[object]

    def rows(self, which: slice | Int64Array) -> Pieces:
        """Those rows; no bytes are copied."""
        return Pieces(self.sizes[which], self.views[which], self.buffers)

    def views_after(self, buffers: list[object]) -> Views:
        """The views, for pieces that lie after *buffers*, to which those of this column are added."""
        views = renumbered(self.views, len(buffers))
        buffers += self.buffers
        return views


def pieces_of(column: Column) -> Pieces:
    """The rows of *column*, whose bytes are not copied unless they are short."""
    chunks = column.chunks if isinstance(column, pa.ChunkedArray) else [column]
    found = [_pieces(each) for each in chunks if len(each)]
    if len(found) == 1:
        return found[0]
    buffers: list[object] = []
    views = [each.views_after(buffers) for each in found]
    return Pieces(
        np.concatenate([np.empty(0, np.int64), *(each.sizes for each in found)]),
        np.concatenate([np.empty((0, 2), np.uint64), *views]),
        buffers,
    )


def _pieces(column: pa.BinaryArray) -> Pieces:
    _, offsets, content = column.buffers()
    is_large = pa.types.is_large_binary(column.type) or pa.types.is_large_string(column.type)
    kind = np.int64 if is_large else np.int32
    assert offsets is not None, "there are rows"
    borders = np.frombuffer(offsets, kind)[column.offset : column.offset + len(column) + 1]
    borders = borders.astype(np.int64, copy=False)
    sizes = np.diff(borders)
    if column.null_count:
        sizes[column.is_null().to_numpy(zero_copy_only=False)] = -1
    begin = int(borders[0])
    if sizes.min() <= INLINE_BYTES or int(borders[-1]) - begin > _FARTHEST:
        return _cast_pieces(column, sizes)
    assert content is not None, "no row is empty"
    views = np.empty((len(column), 2), np.uint64)
    # What views have of a piece's beginning is for comparisons only.
    views[:, 0] = sizes
    views[:, 1] = (borders[:-1] - begin) << 32
    return Pieces(sizes, views, [content.slice(begin)])


def _cast_pieces(column: pa.BinaryArray, sizes: Int64Array) -> Pieces:
    cast = column.cast(pa.binary_view())
    _, words, *buffers = cast.buffers()
    views = np.frombuffer(words or b"", np.uint64).reshape(-1, 2)
    views = views[cast.offset : cast.offset + len(column)]
    if column.null_count:
        views = np.where((sizes < 0)[:, None], np.uint64(0), views)
    return Pieces(sizes, views, buffers)


def renumbered(views: Views, number: int) -> Views:
    """*views* of pieces whose buffers come after *number* others."""
    if not number:
        return views
    sizes = views[:, 0] & np.uint64(0xFFFFFFFF)
    moved = views.copy()
    moved[:, 1] += (sizes > INLINE_BYTES) * np.uint64(number)
    return moved


def joined(
    columns: Sequence[Views], buffers: Sequence[object], rows: int, *, last: Views | None = None
) -> pa.Buffer:
    """The bytes of all pieces, row by row, and of *last* after them; long ones lie in *buffers*, to which their views refer by number."""
    count = rows * len(columns)
    views = np.empty((count + 1, 2), np.uint64)
    by_row = views[:count].reshape(rows, len(columns), 2)
    for index, column in enumerate(columns):
        whole(by_row)[:, index] = whole(column)
    views[count] = 0 if last is None else last
    given = [None, pa.py_buffer(views), *(pa.py_buffer(each) for each in buffers)]
    pieces = pa.Array.from_buffers(pa.binary_view(), count + 1, given)
    content = pieces.cast(pa.binary()).buffers()[2]
    assert content is not None
    return content
