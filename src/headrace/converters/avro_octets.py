"""Avro's bytes of many rows at once: numbers as matrices, texts as Arrow has them, joined at the end.

See https://avro.apache.org/docs/1.12.0/specification/#binary-encoding for the forms.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

Rows = npt.NDArray[np.bool_]
"""One truth per row: whether the row is one that counts."""

_SEVEN = np.uint64(7)
_LOW = np.uint64(0x7F)
# No pa.scalar: making one imports pandas, which takes a second and which an idle worker never needs.
_NOTHING = b""


@dataclass(frozen=True, slots=True)
class Padded:
    """Bytes of up to *octets.shape[1]* per row; *kept* says which of them are written (``None``: all)."""

    octets: npt.NDArray[np.uint8]
    kept: npt.NDArray[np.bool_] | None = None


Piece = Padded | pa.BinaryArray
"""What each row's bytes consist of, in order; a column has no nulls."""


def varints(numbers: npt.NDArray[np.signedinteger], rows: Rows | None = None) -> Padded:
    """Integers in Avro's variable length, zigzag coded; nothing in rows that do not count."""
    wide = numbers.astype(np.int64)
    left = ((wide << 1) ^ (wide >> 63)).view(np.uint64)
    width = max(1, -(-int(left.max(initial=0)).bit_length() // 7))
    octets = np.empty((len(wide), width), np.uint8)
    kept = np.empty((len(wide), width), np.bool_)
    kept[:, 0] = True if rows is None else rows
    for place in range(width):
        octets[:, place] = left & _LOW
        left = left >> _SEVEN
        if place + 1 < width:
            more = left > 0
            octets[:, place] |= more.view(np.uint8) << 7
            kept[:, place + 1] = more & kept[:, place]
    return Padded(octets, None if width == 1 and rows is None else kept)


def fixed(octets: npt.NDArray[np.uint8], rows: Rows | None = None) -> Padded:
    """As many bytes for each row as *octets* has columns; nothing in rows that do not count."""
    if rows is None:
        return Padded(octets)
    return Padded(octets, np.broadcast_to(rows[:, None], octets.shape))


def constant(content: bytes, count: int, rows: Rows | None = None) -> Padded:
    """The same bytes in *count* rows; nothing in rows that do not count."""
    octets = np.frombuffer(content, np.uint8)
    return fixed(np.broadcast_to(octets, (count, len(octets))), rows)


def sized(texts: pa.BinaryArray, rows: Rows | None = None) -> tuple[Piece, Piece]:
    """Byte strings behind their lengths; nothing in rows that do not count or are null."""
    chosen = bare(texts, rows)
    lengths = pc.binary_length(chosen).to_numpy(zero_copy_only=False)
    return varints(lengths, rows), chosen


def bare(texts: pa.BinaryArray, rows: Rows | None = None) -> pa.BinaryArray:
    """Byte strings without their lengths; nothing in rows that do not count or are null."""
    if rows is not None and not rows.all():
        texts = pc.if_else(pa.array(rows), texts, None)
    return texts.fill_null(b"") if texts.null_count else texts


def joined(pieces: Sequence[Piece], rows: int) -> pa.BinaryArray:
    """*pieces* as one column of *rows* rows."""
    columns = list(_columns(pieces))
    if not columns:
        return pa.repeat(_NOTHING, rows)
    return columns[0] if len(columns) == 1 else pc.binary_join_element_wise(*columns, _NOTHING)


def _columns(pieces: Sequence[Piece]) -> Iterator[pa.BinaryArray]:
    """*pieces* as columns, neighbouring matrices in one."""
    waiting = list[Padded]()
    for piece in pieces:
        if isinstance(piece, Padded):
            waiting.append(piece)
            continue
        if waiting:
            yield _unpadded(waiting)
        waiting = []
        yield piece
    if waiting:
        yield _unpadded(waiting)


def _unpadded(matrices: Sequence[Padded]) -> pa.BinaryArray:
    octets = np.concatenate([each.octets for each in matrices], axis=1)
    count, width = octets.shape
    borders = np.arange(count + 1, dtype=np.int64) * width
    if any(each.kept is not None for each in matrices):
        kept = np.concatenate([_all_kept(each) for each in matrices], axis=1)
        np.cumsum(np.count_nonzero(kept, axis=1), out=borders[1:])
        octets = octets[kept]
    # 64-bit offsets, so that Arrow and not a wrapped number says when 2 GB are exceeded.
    buffers = [None, pa.py_buffer(borders), pa.py_buffer(np.ascontiguousarray(octets))]
    return pa.Array.from_buffers(pa.large_binary(), count, buffers).cast(pa.binary())


def _all_kept(piece: Padded) -> npt.NDArray[np.bool_]:
    return np.ones(piece.octets.shape, np.bool_) if piece.kept is None else piece.kept
