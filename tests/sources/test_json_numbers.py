"""Numbers of JSON documents that are parsed: kept, handed over as the configuration says, never rounded."""

from __future__ import annotations

import json
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as some

from headrace.connect.columns import column_of
from headrace.connect.errors import RecordError
from headrace.connect.json_document import document
from headrace.connect.partition import SourcePartition
from headrace.sources import EvolvingRecord
from headrace.sources.json_numbers import Numbers, parsed
from headrace.task.connector_spec import ErrorPolicy
from sources.shelf import PROPS, SHELF, Shelf, ShelfConnector, ShelfTask
from task.local_loop import Rounds

BIG, LONG, LARGE = "9223372036854775808", "0.1000000000000000055511151231257827", "1e400"


class Wrapping(ShelfTask):
    """Changes records of JSON one by one."""

    def last_evolution(self, record: EvolvingRecord) -> EvolvingRecord:
        """Puts the value into an object, and notes its type."""
        if record.value is not None:
            record.value = {"was": type(record.value).__name__, "is": record.value}
        record.entry.set("seen", record.entry.record_count)
        return record


class WrappingConnector(ShelfConnector):
    """The shelf, wrapped."""

    task_class = Wrapping


@pytest.fixture(autouse=True)
def shelf() -> Shelf:
    """A shelf of numbers."""
    SHELF.__init__()
    lines = ["1", BIG, "[2.50]", LARGE, LONG, "3"]
    SHELF.objects = {"a": "\n".join(lines).encode()}
    return SHELF


def rounds(**more: str) -> Rounds:
    """Rounds of the connector."""
    props = {**PROPS, "name": "c", "extractor.class": "jsonl", **more}
    errors = ErrorPolicy(tolerate=True, dead_letters="dead")
    return Rounds(WrappingConnector, props, errors)  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize(
    ("numbers", "expected"),
    [("decimal", [Decimal(BIG), Decimal(LONG), Decimal(LARGE)]), ("string", [BIG, LONG, LARGE])],
)
def test_what_64_bits_do_not_hold_is_what_the_setting_says(
    numbers: Numbers, expected: list[object]
):
    """In any depth; what they hold is an int or a float."""
    found = parsed(f'{{"a":[{BIG},{LONG}],"b":{LARGE}}}', numbers)

    assert expected == [*found["a"], found["b"]]
    assert [-(2**63), 0.1, 1.5e300] == parsed("[-9223372036854775808,0.1,1.5e300]", numbers)


@pytest.mark.parametrize("number", [BIG, f"-{BIG}9", LONG, LARGE, "1e-400", "9" * 5000])
def test_by_default_such_a_number_is_an_error(number: str):
    """That names it, and what to do."""
    with pytest.raises(RecordError, match=rf"The number {number[:20]}.*Set json\.numbers"):
        parsed(f"[{number}]", "error")


def test_an_exponent_that_no_decimal_has_is_an_error():
    """And not a crash."""
    with pytest.raises(RecordError, match=r"Set json\.numbers=string"):
        parsed("1e99999999999999999999", "decimal")


def test_a_document_that_is_nested_too_deeply_is_an_error():
    """And not a crash."""
    with pytest.raises(RecordError, match="nested too deeply"):
        parsed("[" * 100_000 + "]" * 100_000, "string")


@given(some.decimals(allow_nan=False, allow_infinity=False) | some.integers().map(Decimal))
def test_decimals_are_written_with_all_their_digits(number: Decimal):
    """As numbers, wherever they are in a document."""
    text = document({"a": [number, 1], "b": None})

    assert {"a": [number, 1], "b": None} == json.loads(text, parse_float=Decimal, parse_int=Decimal)
    assert [text] == column_of(None, [{"a": [number, 1], "b": None}]).to_pylist()


def test_a_record_with_such_a_number_passes_the_evolution():
    """As a decimal it comes out as it came in."""
    played = rounds(**{"json.numbers": "decimal"})

    played.play()

    assert [
        b'{"was":"int","is":1}',
        f'{{"was":"Decimal","is":{BIG}}}'.encode(),
        b'{"was":"list","is":[2.5]}',
        b'{"was":"Decimal","is":1E+400}',
        f'{{"was":"Decimal","is":{LONG}}}'.encode(),
        b'{"was":"int","is":3}',
    ] == played.values("books")


@pytest.mark.parametrize("most", ["1", "2", "3", "500"])
@pytest.mark.parametrize("killed_at", range(1, 10))
def test_a_number_that_is_an_error_passes_over_its_record_only(most: str, killed_at: int):
    """The line's bytes are the dead letter; wherever it is killed, each record is somewhere once."""
    played = rounds(**{"max.poll.records": most})

    played.play(killed_at=killed_at)
    played.play()

    assert [BIG.encode(), LARGE.encode(), LONG.encode()] == played.values("dead")
    assert [1, [2.5], 3] == [json.loads(each or b"")["is"] for each in played.values("books")]
    offset = played.stored[SourcePartition(key="a")]
    assert (6, 6, True) == (offset["recordCount"], offset["seen"], offset["done"])


def test_without_tolerance_the_error_has_its_place():
    """And the offset stays before it."""
    played = rounds(**{"max.poll.records": "500"})
    played.errors = ErrorPolicy()

    with pytest.raises(RecordError, match=f"a, record 2: The number {BIG} has more digits"):
        played.play()

    assert 1 == played.stored[SourcePartition(key="a")]["recordCount"]


def test_half_a_surrogate_pair_passes_where_no_one_parses_it(shelf: Shelf):
    """For an evolution it is a bad record, and the letter has the line's bytes."""
    line = b'{"a":"\\ud800"}'
    shelf.objects = {"a": b"1\n" + line + b"\n2\n"}
    plain, evolved = rounds(), rounds()
    plain.connector = ShelfConnector

    plain.play()
    evolved.play()

    assert [b"1", line, b"2"] == plain.values("books")
    assert [line] == evolved.values("dead")
    assert [1, 2] == [json.loads(each or b"")["is"] for each in evolved.values("books")]


def test_null_can_be_a_tombstone(shelf: Shelf):
    """A value by default; also before the last evolution."""
    shelf.objects = {"a": b'null\n null \n"null"\n{"a":null}\n'}
    plain = rounds()
    plain.connector = ShelfConnector
    buried = rounds(**{"json.null": "tombstone"})
    buried.connector = ShelfConnector
    evolved = rounds(**{"json.null": "tombstone"})

    for each in (plain, buried, evolved):
        each.play()

    assert [b"null", b" null ", b'"null"', b'{"a":null}'] == plain.values("books")
    assert [None, None, b'"null"', b'{"a":null}'] == buried.values("books")
    assert [None, None] == evolved.values("books")[:2]
