"""Where a record comes from, as messages and letters tell it."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pytest

from headrace.connect.batch import BatchOffsets
from headrace.connect.errors import RecordError
from headrace.connect.partition import SourceOffset
from headrace.task.record_origin import located, position_text
from task.loop import batch


@pytest.mark.parametrize(
    ("offset", "text"),
    [
        ({"position": 5}, "at source offset position 5"),
        ({"anchor": 0, "recordCount": 2}, "record 2"),
        ({"recordCount": "2"}, "at source offset recordCount 2"),
        ({"id": b"\x01\xff", "last": None}, "at source offset id 01ff, last None"),
        ({}, "at no source offset"),
        (None, "at no source offset"),
    ],
)
def test_a_position_is_told_in_words(offset: SourceOffset | None, text: str) -> None:
    """By the record's number in its object where the offset counts records, as readers do."""
    assert text == position_text(offset)


def test_one_of_several_records_is_told_by_its_offset() -> None:
    """A number would say that it is this one."""
    text = position_text({"recordCount": 2}, where="at or after")

    assert "at or after source offset recordCount 2" == text


def test_a_row_is_told_by_its_own_offset() -> None:
    """Not by that of the batch's end."""
    counted = BatchOffsets(constant={"anchor": 0}, columns={"recordCount": pa.array([7, 8])})
    rows = replace(batch("a", "b", end=2), offsets=counted)

    found = located(RecordError("It is bad.", row=1), rows)

    assert "filename f, record 8: It is bad." == str(found)


def test_a_place_that_is_known_is_kept() -> None:
    """A reader knows better than its offsets."""
    error = RecordError("It is bad.", row=0, native_key="f", position="byte 25 (record 2)")

    assert str(error) == str(located(error, batch("a", end=1)))
