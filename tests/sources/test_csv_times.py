"""Dates, times and timestamps of CSV files: of ISO 8601, checked, and Connect's types in structs."""

from __future__ import annotations

from datetime import UTC, date, datetime, time, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as some

from headrace.connect.schema import DATE, TIME, TIMESTAMP
from headrace.formats.csv.dialect import CsvDialect
from headrace.formats.csv.format import csv_format
from headrace.testing.format_suite import Found, check_resume, pieces_of, reader_of, records_of

DECLARED = CsvDialect(types=(("d", "date"), ("t", "time"), ("s", "timestamp")))
STRUCTS = CsvDialect(types=DECLARED.types, structs=True)
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MILLISECOND = timedelta(milliseconds=1)


def values_of(kind: str, *texts: str) -> list[object]:
    """What structs have of *texts* of a type; reasons of bad rows."""
    content = "".join(f"{text}\n" for text in ("v,w", *(f"{text},x" for text in texts))).encode()
    dialect = CsvDialect(types=(("v", kind),), structs=True)
    pieces = pieces_of(reader_of(csv_format(dialect), content))
    return [each.value["v"] if isinstance(each, Found) else each.reason for each in pieces]  # type: ignore[index]


def test_structs_have_connects_types():
    """Empty fields are null, as those of numbers."""
    content = b"d,t,s\n2024-02-29,23:59:59.5,2024-02-29T12:00:00+01:00\n,,\n"
    reader = reader_of(csv_format(STRUCTS), content)

    found = [each.value for each in records_of(reader)]

    whole = datetime(2024, 2, 29, 11, tzinfo=UTC)
    assert [
        {"d": date(2024, 2, 29), "t": time(23, 59, 59, 500_000), "s": whole},
        {"d": None, "t": None, "s": None},
    ] == found
    assert reader.value_schema is not None
    kinds = [kind.as_optional() for kind in (DATE, TIME, TIMESTAMP)]
    assert kinds == [each.schema for each in reader.value_schema.fields]


def test_json_objects_keep_the_text():
    """As strings, checked as in structs."""
    content = b"d,t,s\n2024-02-29,23:59,2024-02-29 12:00\n,,\n2023-02-29,23:59,2024-02-29 12:00\n"
    pieces = pieces_of(reader_of(csv_format(DECLARED), content))

    assert [
        '{"d":"2024-02-29","t":"23:59","s":"2024-02-29 12:00"}',
        '{"d":null,"t":null,"s":null}',
        "The field 'd' holds '2023-02-29', which is not of type date.",
    ] == [each.value if isinstance(each, Found) else each.reason for each in pieces]


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("date", "2024-13-01"),
        ("date", "2024-04-31"),
        ("date", "1900-02-29"),
        ("date", "24-01-01"),
        ("date", "2024-1-1"),
        ("date", "2024-01-01T00:00"),
        ("time", "24:00"),
        ("time", "12:00:60"),
        ("time", "12:00:00.1234"),
        ("time", "12"),
        ("timestamp", "2024-01-01"),
        ("timestamp", "2024-02-30T00:00"),
        ("timestamp", "2024-01-01T00:00:00.0000001Z"),
        ("timestamp", "2024-01-01T00:00 Z"),
    ],
)
def test_what_is_none_is_a_bad_record(kind: str, text: str):
    """Those that are finer than a millisecond, too: nothing is rounded."""
    good = {"date": "2024-01-01", "time": "00:00", "timestamp": "2024-01-01T00:00"}[kind]

    first, refused, last = values_of(kind, good, text, good)

    assert first == last
    assert f"The field 'v' holds {text!r}, which is not of type {kind}." == refused


@pytest.mark.parametrize(
    ("kind", "first", "last", "outside"),
    [
        ("date", "0001-01-01", "9999-12-31", ["0000-01-01", "0000-02-29"]),
        (
            "timestamp",
            "0001-01-01T00:00Z",
            "9999-12-31T23:59:59.999",
            ["0000-12-31T23:59", "0001-01-01T00:59+01:00", "9999-12-31T23:00-01:00"],
        ),
    ],
)
def test_years_that_python_does_not_know_are_bad_records(
    kind: str, first: str, last: str, outside: list[str]
):
    """Of timestamps those as UTC; a row that no one can look at would end the task."""
    found = values_of(kind, first, *outside, last)

    assert [
        f"The field 'v' holds {text!r}, which is not of the years 1 to 9999." for text in outside
    ] == found[1:-1]
    assert [1, 9999] == [each.year for each in (found[0], found[-1])]  # pyright: ignore[reportAttributeAccessIssue]


@given(some.dates())
def test_any_date_is_read(day: date):
    """As it is written."""
    assert [day] == values_of("date", day.isoformat())


@given(some.dates(), some.integers(0, 31))
def test_no_day_is_taken_for_another_one(day: date, number: int):
    """A day that its month has not is bad."""
    text = f"{day.isoformat()[:-2]}{number:02}"
    try:
        expected: object = date.fromisoformat(text)
    except ValueError:
        expected = f"The field 'v' holds {text!r}, which is not of type date."

    assert [expected] == values_of("date", text)


@given(
    some.datetimes(datetime(2, 1, 1), datetime(9998, 1, 1)),  # noqa: DTZ001 (the zone comes behind)
    some.sampled_from(["", "Z", "+02:00", "-0930", "+01"]),
    some.sampled_from("T "),
    some.sampled_from(["minutes", "seconds", "milliseconds"]),
)
def test_any_timestamp_is_read(moment: datetime, zone: str, between: str, fine: str):
    """One without zone is of UTC."""
    text = f"{moment.isoformat(between, fine)}{zone}"
    expected = datetime.fromisoformat(text if zone else f"{text}Z")

    (found,) = values_of("timestamp", text)

    assert isinstance(found, datetime)
    assert (expected - EPOCH) // MILLISECOND == (found - EPOCH) // MILLISECOND


def test_times_are_not_inferred():
    """A file of dates had strings before there were such types."""
    dialect = CsvDialect(infer=True, structs=True)

    (record,) = records_of(reader_of(csv_format(dialect), b"d\n2024-01-01\n"))

    assert {"d": "2024-01-01"} == record.value


@pytest.mark.parametrize("dialect", [DECLARED, STRUCTS])
def test_reading_goes_on_behind_every_record(dialect: CsvDialect):
    """With enough rows for several chunks."""
    body = b"".join(
        b"2024-01-%02d,12:00:%02d,2024-01-01T00:00:%02dZ\n" % ((row + 1), row, row)
        for row in range(30)
    )

    assert 30 == check_resume(csv_format(dialect), b"d,t,s\n" + body, rows=(1, 7))
