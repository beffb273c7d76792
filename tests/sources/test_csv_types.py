"""CSV with types: declared or inferred, as JSON objects or as structs; rows that lack fields."""

from __future__ import annotations

import gzip
import io
import json
from dataclasses import replace
from decimal import Decimal

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

from headrace.connect.errors import ConnectError, TaskFailedError
from headrace.connect.schema import BOOLEAN, FLOAT64, INT64, STRING, Schema, decimal
from headrace.formats.blocks import Span
from headrace.formats.chunk import Resume
from headrace.formats.csv.dialect import CsvDialect
from headrace.formats.csv.format import csv_format
from headrace.formats.csv.types import inferred_type
from headrace.formats.exact_numbers import double_of, int64_of
from headrace.formats.format import ObjectInput
from headrace.formats.streams import Compression
from headrace.testing.format_suite import (
    LIMITS,
    Found,
    check_passing_over,
    check_resume,
    pieces_of,
    reader_of,
    records_of,
)
from project.sampling import drawn

STRUCTS = CsvDialect(
    types=(("n", "integer"), ("x", "number"), ("d", "decimal(2)"), ("b", "boolean")), structs=True
)
INFERRING = CsvDialect(infer=True)
LENIENT = CsvDialect(ragged="fill")


def values(dialect: CsvDialect, content: bytes) -> list[object]:
    """What is read, bad rows as their reasons."""
    return [
        each.value if isinstance(each, Found) else each.reason
        for each in pieces_of(reader_of(csv_format(dialect), content))
    ]


def test_structs_have_the_declared_types():
    """Every field may be null, an empty one that is no string is, and the texts of numbers are numbers."""
    content = b"s,n,x,d,b\na,1,1.5,2.50,TRUE\n,,,,\n"
    reader = reader_of(csv_format(STRUCTS), content)

    found = [each.value for each in records_of(reader)]

    assert [
        {"s": "a", "n": 1, "x": 1.5, "d": Decimal("2.50"), "b": True},
        {"s": "", "n": None, "x": None, "d": None, "b": None},
    ] == found
    assert reader.value_schema is not None
    kinds = [STRING, INT64, FLOAT64, decimal(2), BOOLEAN]
    assert [kind.as_optional() for kind in kinds] == [
        each.schema for each in reader.value_schema.fields
    ]


@pytest.mark.parametrize(
    ("kind", "good", "bad"),
    [
        ("integer", "-9223372036854775808", "9223372036854775808"),
        ("integer", "0", "1.0"),
        ("integer", "7", "007"),
        ("number", "0.1", "0.1000000000000000055511151231257827"),
        ("number", "1e308", "1e309"),
        ("number", "12345678901234568", "12345678901234567"),
        ("number", "5e-324", "1e-400"),
        ("number", "0.30000000000000004", "NaN"),
        ("decimal(2)", "99999999999999999999.99", "1.234"),
        ("decimal(0)", "1" * 38, "1" * 39),
        ("decimal(37)", "0." + "1" * 37, "10.5"),
    ],
)
def test_a_number_is_kept_or_refused_but_never_rounded(kind: str, good: str, bad: str):
    """The bad row is told in its place, with the field and the type."""
    dialect = CsvDialect(types=(("v", kind),), structs=True)

    first, refused, last = values(dialect, f"v\n{good}\n{bad}\n{good}\n".encode())

    assert first == last
    assert isinstance(first, dict)
    assert Decimal(good) == Decimal(str(first["v"]))
    assert f"The field 'v' holds {bad!r}, which" in str(refused)
    assert kind in str(refused)


def test_json_objects_keep_the_text_of_every_number():
    """However many digits it has: only structs have to hold it."""
    dialect = CsvDialect(types=(("i", "integer"), ("x", "number"), ("d", "decimal(1)")))

    found = values(dialect, b"i,x,d\n123456789012345678901234567890,1.10e400,2.0\n")

    assert ['{"i":123456789012345678901234567890,"x":1.10e400,"d":2.0}'] == found


@pytest.mark.parametrize("structs", [False, True])
def test_a_short_row_is_filled_where_that_is_asked_for(structs: bool):  # noqa: FBT001
    """With nulls, which an empty string is not; a long one stays an error."""
    content = b'a,b,c\n1,2,3\n1\n1,"",3\n1,2,3,4\n\n5,6\n'
    dialect = replace(LENIENT, structs=structs)

    found = [
        json.loads(each) if isinstance(each, str) and each.startswith("{") else each
        for each in values(dialect, content)
    ]

    assert [
        {"a": "1", "b": "2", "c": "3"},
        {"a": "1", "b": None, "c": None},
        {"a": "1", "b": "", "c": "3"},
        "This row has 4 fields, but 3 are expected.",
        {"a": "5", "b": "6", "c": None},
    ] == found
    assert "has 1 field, but 3 are expected" in str(values(CsvDialect(structs=structs), content)[1])


@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        (["1", "-2"], "integer"),
        (["1", "2.5"], "number"),
        (["true", "FALSE"], "boolean"),
        (["1", "true"], "string"),
        (["007"], "string"),
        (["9223372036854775808"], "string"),
        (["0.12345678901234567890123"], "string"),
        (["1e5"], "number"),
        ([], "string"),
        ([None, "3"], "integer"),
    ],
)
def test_the_narrowest_type_without_loss_is_inferred(texts: list[str], expected: str):
    """A number that no 64 bits hold is text."""
    assert expected == inferred_type(pa.array(texts, pa.utf8())).name


def test_inference_looks_at_the_sample_only():
    """What comes behind it and does not fit is an error in its place."""
    rows = [f"{number},{number}.5,x\n" for number in range(300)]
    content = ("n,x,s\n" + "".join(rows) + "oops,1,x\n7,1,x\n").encode()
    short = replace(INFERRING, sample_bytes=1000)

    found = values(short, content)
    whole = values(INFERRING, content)

    assert '{"n":0,"x":0.5,"s":"x"}' == found[0]
    assert "The field 'n' holds 'oops', which is not of type integer." == found[300]
    assert '{"n":7,"x":1,"s":"x"}' == found[301]
    assert '{"n":"0","x":0.5,"s":"x"}' == whole[0]


def test_declared_types_win_over_inferred_ones():
    """A field that looks like a number can stay a string."""
    dialect = replace(INFERRING, types=(("zip", "string"),), structs=True)

    assert [{"zip": "12345", "n": 1}] == values(dialect, b"zip,n\n12345,1\n")


def test_what_was_inferred_stays_for_the_object():
    """Reading goes on with it where another sample would say something else; so it does with another size."""
    content = b"n\n" + b"1\n" * 600 + b"oops\n"
    form = csv_format(replace(INFERRING, sample_bytes=1000, structs=True))
    first = records_of(reader_of(form, content[:1000]))[0]

    larger = csv_format(replace(INFERRING, structs=True))
    reader = reader_of(larger, content, resume=first.place, constants=first.constants)
    pieces = pieces_of(reader)

    assert '["integer"]' == first.constants["types"]
    assert [{"n": 1}] * 599 == [each.value for each in pieces[:-1] if isinstance(each, Found)]
    assert "which is not of type integer" in str(pieces[-1])
    assert larger.signature() == form.signature()


def test_a_header_alone_tells_no_types_yet():
    """The first record that comes later does."""
    form = csv_format(INFERRING)
    reader = reader_of(form, b"n\n")
    assert [] == records_of(reader)

    rest = reader_of(form, b"n\n1\n", resume=reader.place, constants=reader.constants())

    assert {"header": '["n"]'} == reader.constants()
    assert ['{"n":1}'] == [each.value for each in records_of(rest)]


@pytest.mark.parametrize("half", [b"", b"1", b'"1'])
def test_a_header_alone_of_an_object_that_grows_tells_no_types_yet(half: bytes):
    """Nor does a row that is half written: what it becomes is told by the whole one."""
    form = csv_format(INFERRING)
    growing = Span(limit=len(b"n\n" + half), take_tail=False)
    source = ObjectInput(native_key="an object", raw=io.BytesIO(b"n\n" + half))  # pyright: ignore[reportArgumentType]
    reader = form.reader(source, span=growing, resume=Resume(), limits=LIMITS, constants={})
    assert [] == records_of(reader)

    rest = reader_of(form, b"n\n1\n", resume=reader.place, constants=reader.constants())

    assert {"header": '["n"]'} == reader.constants()
    assert ['{"n":1}'] == [each.value for each in records_of(rest)]


def test_bad_rows_tell_no_types_but_those_behind_them_do():
    """They are passed over, in the sample as later."""
    content = b"a,b\n1,2\n1,2,3\nx,2\n"

    assert [
        '{"a":"1","b":2}',
        "This row has 3 fields, but 2 are expected.",
        '{"a":"x","b":2}',
    ] == values(INFERRING, content)


def test_a_byte_order_mark_is_no_part_of_a_number():
    """Where no header stands between them, and rows are read one by one."""
    found = values(replace(INFERRING, header=False, escape="\\"), b"\xef\xbb\xbf1,x\n")

    assert ['{"field_1":1,"field_2":"x"}'] == found


def test_what_was_not_planned_tells_no_types():
    """It may be half written."""
    form = csv_format(INFERRING)
    source = ObjectInput(native_key="an object", raw=io.BytesIO(b"n\n1\nx\n"))  # pyright: ignore[reportArgumentType]
    reader = form.reader(source, span=Span(limit=4), resume=Resume(), limits=LIMITS, constants={})

    assert ['{"n":1}'] == [each.value for each in records_of(reader)]


def test_what_can_be_unpacked_comes_before_the_damage():
    """Also where the sample meets it."""
    packed = gzip.compress(b"n\n" + b"".join(b"%d\n" % row for row in range(5000)))
    reader = reader_of(csv_format(INFERRING), packed[:-50], compression=Compression.GZIP)

    first = reader.next_chunk()
    assert first is not None
    assert '{"n":0}' == first.values[0].as_py()
    with pytest.raises(ConnectError, match="cut off"):
        records_of(reader)


def test_types_that_no_one_knows_are_refused():
    """An offset may have been set by a person."""
    form = csv_format(INFERRING)
    for told in ("integer", '["colour"]', "7"):
        constants = {"header": '["n"]', "types": told}
        with pytest.raises(TaskFailedError, match="an object: Its offset has the types"):
            reader_of(form, b"n\n1\n", resume=Resume(anchor=2), constants=constants)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (CsvDialect(), INFERRING),
        (CsvDialect(), CsvDialect(structs=True)),
        (CsvDialect(types=(("a", "number"),)), CsvDialect(types=(("a", "decimal(1)"),))),
    ],
)
def test_other_values_are_another_format(one: CsvDialect, other: CsvDialect):
    """So that a file does not go on with another schema in its middle."""
    assert one.signature() != other.signature()


def test_filling_rows_is_no_other_format():
    """Whoever met a ragged row can go on behind the rows before it."""
    assert CsvDialect().signature() == LENIENT.signature()


CELL = some.sampled_from(
    ["", "1", "-20", "2.5", "true", "x", "NA", "9223372036854775808", '"a\n,"']
)
DIALECTS = some.builds(
    CsvDialect,
    structs=some.booleans(),
    infer=some.booleans(),
    ragged=some.sampled_from(["error", "fill"]),
    null=some.sampled_from([None, "NA"]),
    sample_bytes=some.sampled_from([8, 16, 1024]),
    types=some.just((("a", "integer"),)),
)


@settings(max_examples=drawn(60), deadline=None)
@given(rows=some.lists(some.lists(CELL, min_size=1, max_size=3), max_size=8), dialect=DIALECTS)
def test_any_rows_are_gone_on_with_behind_each_of_them(rows: list[list[str]], dialect: CsvDialect):
    """Good and bad ones, whatever the settings."""
    content = "".join(",".join(row) + "\n" for row in [["a", "b", "c"], *rows]).encode()

    check_passing_over(csv_format(dialect), content, rows=(1, 3))


@pytest.mark.parametrize("dialect", [STRUCTS, INFERRING, LENIENT, replace(INFERRING, structs=True)])
def test_csv_resumes_at_every_record(dialect: CsvDialect):
    """The suite, with enough rows for several chunks."""
    body = b"".join(b"a,%d,%d.5,1.25,true\n" % (row, row) for row in range(30))

    assert 30 == check_resume(csv_format(dialect), b"s,n,x,d,b\n" + body, rows=(1, 7))


@given(some.decimals(allow_nan=False, allow_infinity=False), some.integers())
def test_what_a_number_is_held_by_is_exact(number: Decimal, whole: int):
    """No digit is lost where a value is given."""
    as_double, as_int64 = double_of(str(number)), int64_of(str(whole))

    assert as_double is None or number == Decimal(repr(as_double))
    assert (whole if -(2**63) <= whole < 2**63 else None) == as_int64


def test_a_schema_is_one_object_for_all_chunks():
    """Converters know it by that."""
    content = b"s,n,x,d,b\n" + b"a,1,1,1,true\n" * 3
    reader = reader_of(csv_format(STRUCTS), content)
    reader.next_chunk()
    first: Schema | None = reader.value_schema
    reader.next_chunk()

    assert first is reader.value_schema
