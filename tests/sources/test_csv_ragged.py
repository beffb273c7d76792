"""Rows of CSV with too few and with too many fields: errors, filled, cut, or both."""

from __future__ import annotations

import json
import logging
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as some

from headrace.formats.by_name import FORMATS, FormatOptions
from headrace.formats.csv.dialect import CsvDialect, Ragged
from headrace.formats.csv.format import csv_format
from headrace.testing.format_suite import Found, check_passing_over, pieces_of, reader_of

CONTENT = b"a,b\n1\n1,2\n1,2,3\n1,2,3,4\n5,6\n"
SHORT, LONG = "has 1 field, but 2 are expected", "but 2 are expected"
WHOLE = {"a": "1", "b": "2"}


def values(dialect: CsvDialect, content: bytes = CONTENT) -> list[object]:
    """What is read of *content*: objects, structs, or the reasons of bad rows."""
    found = list[object]()
    for each in pieces_of(reader_of(csv_format(dialect), content)):
        value = each.value if isinstance(each, Found) else each.reason
        found.append(json.loads(value) if str(value).startswith('{"') else value)
    return found


@pytest.mark.parametrize("structs", [False, True])
@pytest.mark.parametrize(
    ("ragged", "short", "long"),
    [
        ("error", SHORT, LONG),
        ("fill", {"a": "1", "b": None}, LONG),
        ("cut", SHORT, WHOLE),
        ("fit", {"a": "1", "b": None}, WHOLE),
    ],
)
def test_short_and_long_rows_are_what_the_setting_says(
    ragged: Ragged,
    short: object,
    long: object,
    structs: bool,  # noqa: FBT001
):
    """The rows around them are read in any case."""
    first, second, third, fourth, last = values(CsvDialect(ragged=ragged, structs=structs))

    assert [WHOLE, {"a": "5", "b": "6"}] == [second, last]
    for expected, found in ((short, first), (long, third), (long, fourth)):
        assert expected in found if isinstance(found, str) else expected == found


def test_what_is_cut_is_told_once(caplog: pytest.LogCaptureFixture):
    """And nothing where nothing is cut."""
    with caplog.at_level(logging.WARNING):
        values(CsvDialect(ragged="fit"), CONTENT * 3)
        values(CsvDialect(ragged="cut"), b"a,b\n1,2\n")
        values(CsvDialect(ragged="fill"))

    (told,) = caplog.messages
    assert "has 4 fields, but 2 are expected" in told


def test_of_a_thousand_files_one_is_told(caplog: pytest.LogCaptureFixture):
    """Of those that are read with the same options, as by one task."""
    options = FormatOptions(dialect=CsvDialect(ragged="cut"))
    with caplog.at_level(logging.WARNING):
        for _ in range(3):
            assert pieces_of(reader_of(FORMATS["csv"](options), CONTENT))

    assert 1 == len(caplog.messages)


def test_what_is_cut_tells_no_type_and_breaks_none():
    """Types are told by the fields that are kept."""
    dialect = CsvDialect(ragged="cut", infer=True, structs=True)

    assert [{"a": 1, "b": 2}, {"a": 3, "b": 4}] == values(dialect, b"a,b\n1,2,x\n3,4\n")


def test_policies_for_ragged_rows_are_no_other_format():
    """Whoever met a ragged row can go on behind the rows before it."""
    signatures = {CsvDialect(ragged=each).signature() for each in ("error", "fill", "cut", "fit")}

    assert 1 == len(signatures)


@given(
    rows=some.lists(some.integers(1, 4), max_size=10),
    ragged=some.sampled_from(["error", "fill", "cut", "fit"]),
    structs=some.booleans(),
)
def test_reading_goes_on_behind_every_ragged_row(rows: list[int], ragged: Ragged, structs: bool):  # noqa: FBT001
    """Whatever becomes of it."""
    dialect = replace(CsvDialect(names=("a", "b"), header=False), ragged=ragged, structs=structs)
    content = "".join(",".join("x" * fields) + "\n" for fields in rows).encode()

    assert len(rows) == len(check_passing_over(csv_format(dialect), content, rows=(1, 3)))
