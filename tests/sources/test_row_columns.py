"""Rows of a block become a column of the same bytes, however long they are."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from headrace.formats.rows import RowBlock

# Arrow keeps values of up to 12 bytes differently.
_LONG = st.binary(min_size=13, max_size=40)
_ROWS = st.lists(st.one_of(st.binary(max_size=14), _LONG), max_size=30)


def _block(rows: list[bytes]) -> RowBlock:
    nexts = np.cumsum([len(row) + 1 for row in rows], dtype=np.int64)
    starts = np.concatenate(([0], nexts))[: len(rows)]
    buffer = np.frombuffer(bytearray(b"".join(row + b"\n" for row in rows)), np.uint8)
    return RowBlock(buffer=buffer, base=0, starts=starts, ends=nexts - 1, nexts=nexts)


@given(st.one_of(_ROWS, st.lists(_LONG, max_size=30)))
def test_a_column_has_the_bytes_of_each_row(rows: list[bytes]):
    """In order, as one valid column."""
    column = _block(rows).column()

    column.validate(full=True)
    assert pa.binary() == column.type
    assert rows == column.to_pylist()


@given(st.lists(_LONG, min_size=1, max_size=20), st.data())
def test_what_lies_between_picked_rows_is_left_out(rows: list[bytes], data: st.DataObject):
    """The block's reader picks rows where others are blank."""
    picked = sorted(data.draw(st.sets(st.integers(0, len(rows) - 1))))

    column = _block(rows).pick(np.array(picked, np.int64)).column()

    assert [rows[each] for each in picked] == column.to_pylist()


def test_a_column_keeps_its_bytes_when_the_block_is_overwritten():
    """As the block's reader does next."""
    rows = [b"a line that is no longer inline", b"and another one of that kind"]
    block = _block(rows)

    column = block.column()
    block.buffer[:] = 0

    assert rows == column.to_pylist()
