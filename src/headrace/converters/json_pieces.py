"""JSON text of a column, not yet joined: constants, and columns of what differs from row to row."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa
import pyarrow.compute as pc

Pieces = tuple[bytes | pa.BinaryArray, ...]
"""What each row's text consists of, in order. Where a column has a null, the whole row is null.

Structs are joined only once, whatever their depth, because the pieces of a member are pieces of its struct.
"""

# No pa.scalar: making one imports pandas, which takes a second and which an idle worker never needs.
_NOTHING = b""


def joined(pieces: Pieces, rows: int) -> pa.BinaryArray:
    """*pieces* as one column of *rows* rows; a single column is returned as it is."""
    merged = list(_merged(pieces))
    if len(merged) == 1 and not isinstance(merged[0], bytes):
        return merged[0]
    if all(isinstance(piece, bytes) for piece in merged):
        return pa.repeat(pa.scalar(b"".join(_constants(merged))), rows)
    operands = [pa.scalar(each) if isinstance(each, bytes) else each for each in merged]
    return pc.binary_join_element_wise(*operands, _NOTHING)


def _merged(pieces: Pieces) -> Iterator[bytes | pa.BinaryArray]:
    """*pieces* with neighbouring constants in one, and without empty ones."""
    waiting = b""
    for piece in pieces:
        if isinstance(piece, bytes):
            waiting += piece
            continue
        if waiting:
            yield waiting
        waiting = b""
        yield piece
    if waiting:
        yield waiting


def _constants(pieces: Sequence[bytes | pa.BinaryArray]) -> Iterator[bytes]:
    return (piece for piece in pieces if isinstance(piece, bytes))
