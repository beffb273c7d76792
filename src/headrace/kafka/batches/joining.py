"""Many small pieces of bytes joined into one buffer, by columns: integers in variable length, and bytes that lie elsewhere.

A column has one piece for each row. Arrow's views stand for pieces, and Arrow copies them all at once.
"""

from __future__ import annotations

from collections.abc import Sequence
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
_WORD_BYTES: Final = 8
_WORD_BITS: Final = np.uint64(64)
_HALF_WORD: Final = np.uint64(32)


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
    rest = ((numbers << 1) ^ (numbers >> 63)).astype(np.uint64)
    longest = max(1, -(-int(rest.max()).bit_length() // 7))
    words: list[UInt64s] = []
    widths: UInt64s = np.ones(1, np.uint64)
    for begin in (0, _WORD_BYTES):
        word: UInt64s = np.zeros(1, np.uint64)
        for index in range(begin, min(longest, begin + _WORD_BYTES)):
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


def inline(codes: Sequence[Codes]) -> list[Views]:
    """Columns of pieces with the bytes of *codes* one after the other: one column where they fit into a view, or more."""
    found: list[Views] = []
    packed = NOTHING
    for each in codes:
        fits = each.longest <= _WORD_BYTES and packed.longest + each.longest <= INLINE_BYTES
        if not fits and packed.longest:
            found.append(_inline_views(packed))
            packed = NOTHING
        packed = _after(packed, each) if packed.longest else each
    return [*found, _inline_views(packed)]


def _after(before: Codes, codes: Codes) -> Codes:
    shift = before.widths << np.uint64(3)
    high = before.high
    if before.longest + codes.longest > _WORD_BYTES:
        # What is shifted by a whole word or more is 0, also by what is "negative" here.
        high = high | (codes.low >> (_WORD_BITS - shift)) | (codes.low << (shift - _WORD_BITS))
    return Codes(
        before.low | (codes.low << shift),
        high,
        before.widths + codes.widths,
        before.longest + codes.longest,
    )


def _inline_views(codes: Codes) -> Views:
    first = codes.widths | (codes.low << _HALF_WORD)
    second = (codes.low >> _HALF_WORD) | (codes.high << _HALF_WORD)
    return np.stack(np.broadcast_arrays(first, second), axis=-1)


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


def views_of(column: Column, buffers: list[object]) -> Views:
    """The pieces of *column*, none for null; the buffers in which they lie are added to *buffers*."""
    chunks = column.chunks if isinstance(column, pa.ChunkedArray) else [column]
    found: list[Views] = []
    for chunk in chunks:
        views, content = _views(chunk, len(buffers))
        found.append(views)
        buffers.append(content)
    return found[0] if len(found) == 1 else np.concatenate(found)


def _views(column: pa.BinaryArray, number: int) -> tuple[Views, pa.Buffer]:
    cast = column.cast(pa.binary_view())
    buffers = cast.buffers()
    assert len(buffers) <= 3, "a column has one buffer, and its cast takes it over"  # noqa: PLR2004
    words = np.frombuffer(buffers[1] or b"", np.uint64).reshape(-1, 2)
    words = words[cast.offset : cast.offset + len(column)]
    if column.null_count:
        words = np.where(column.is_null().to_numpy(zero_copy_only=False)[:, None], 0, words)
    words = renumbered(words, number)
    return words.astype(np.uint64, copy=False), (
        buffers[2] if len(buffers) > 2 else pa.py_buffer(b"")  # noqa: PLR2004
    )


def renumbered(views: Views, number: int) -> Views:
    """*views* of pieces whose buffers come after *number* others."""
    if not number:
        return views
    sizes = views[:, 0] & np.uint64(0xFFFFFFFF)
    moved = views.copy()
    moved[:, 1] += (sizes > INLINE_BYTES) * np.uint64(number)
    return moved


def joined(columns: Sequence[Views], buffers: Sequence[object], rows: int) -> pa.Buffer:
    """The bytes of all pieces, row by row; long ones lie in *buffers*, to which their views refer by number."""
    views = np.empty((rows, len(columns), 2), np.uint64)
    for index, column in enumerate(columns):
        views[:, index] = column
    given = [None, pa.py_buffer(views), *(pa.py_buffer(each) for each in buffers)]
    pieces = pa.Array.from_buffers(pa.binary_view(), rows * len(columns), given)
    content = pieces.cast(pa.binary()).buffers()[2]
    assert content is not None
    return content
