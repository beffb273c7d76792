"""Patterns of Java's SimpleDateFormat."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.java.date_format import formatted, pattern_problem, tokens
from headrace.java.date_parsing import DateReader
from headrace.java.gregorian_calendar import date_of, day_number
from headrace.transforms.timestamps import written

# What Java itself wrote and read, in English and UTC.
JAVA: Mapping[str, Any] = json.loads((Path(__file__).parent / "java_dates.json").read_text())
WRITTEN: Mapping[str, Sequence[str]] = JAVA["written"]
READ: Mapping[str, Mapping[str, int | None]] = JAVA["read"]


@pytest.mark.parametrize("pattern", WRITTEN)
def test_times_are_written_as_java_writes_them(pattern: str) -> None:
    """Also before 1970, before the Gregorian calendar, and before year 1."""
    assert WRITTEN[pattern] == [formatted(tokens(pattern), each) for each in JAVA["stamps"]]


@pytest.mark.parametrize("pattern", READ)
def test_texts_are_read_as_java_reads_them(pattern: str) -> None:
    """Leniently; and what is no time in Java is none here."""
    reader = DateReader(tokens(pattern), now=JAVA["now"])

    assert READ[pattern] == {text: reader.millis(text) for text in READ[pattern]}


@pytest.mark.parametrize(
    "text", ["9" * 5000, "-" + "9" * 5000, "1E" + "9" * 5000, "9" * 50 + "E-49"]
)
def test_numbers_of_any_length_are_read(text: str) -> None:
    """They end where Java's do."""
    assert DateReader(tokens("yyyy"), now=0).millis(text) is not None


@pytest.mark.parametrize(
    ("pattern", "reported"),
    [
        ("b", "Illegal pattern character 'b'"),
        ("yyyy c", "Illegal pattern character 'c'"),
        ("yyyy'", "Unterminated quote"),
        ("XXXX", "invalid ISO 8601 format: length=4"),
        ("''", None),
        ("é_{}", None),
        ("", None),
    ],
)
def test_patterns_that_are_none_are_reported(pattern: str, reported: str | None) -> None:
    """In Java's words."""
    assert reported == pattern_problem(pattern)


@given(st.integers(-3_000_000, 3_000_000))
def test_a_day_has_one_date(day: int) -> None:
    """In both calendars."""
    assert day == day_number(*date_of(day))


@given(
    pattern=st.sampled_from([*WRITTEN, "yyyy-MM-dd HH:mm:ss.SSS", "hh a 'o''clock'", ""]),
    stamps=st.lists(st.integers(-(10**14), 10**15), min_size=1, max_size=5),
)
def test_columns_are_written_as_single_times_are(pattern: str, stamps: list[int]) -> None:
    """Whatever the pattern."""
    column = written(tokens(pattern), np.array(stamps, np.int64))

    assert [formatted(tokens(pattern), each) for each in stamps] == column.to_pylist()
