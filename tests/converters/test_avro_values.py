"""Values as Avro's bytes: against the specification, and against a reader that is not ours."""

from __future__ import annotations

import dataclasses
import datetime as dt
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

from converters.avro_examples import (
    FLOAT32,
    INT8,
    SCHEMAS,
    array,
    as_read,
    column,
    datums,
    map_of,
    read_back,
    struct,
    union,
    values_of,
)
from headrace.connect.errors import RecordError
from headrace.connect.schema import (
    BOOLEAN,
    BYTES,
    DATE,
    FLOAT64,
    INT32,
    INT64,
    OPTIONAL_STRING,
    STRING,
    TIME,
    TIMESTAMP,
    Field,
    Schema,
    SchemaType,
    arrow_type,
    decimal,
)
from headrace.converters.avro_schema import AvroRules
from headrace.converters.avro_values import joined, varints
from project.sampling import drawn

OPTIONAL_INT = INT32.as_optional()
WITH_DEFAULT = dataclasses.replace(OPTIONAL_INT, default=5)
ENUM = Schema(
    type=SchemaType.STRING,
    name="n.E",
    parameters={
        "io.confluent.connect.avro.Enum": "n.E",
        "io.confluent.connect.avro.Enum.A": "A",
        "io.confluent.connect.avro.Enum.B": "B",
    },
)
FIXED = Schema(type=SchemaType.BYTES, name="n.F", parameters={"connect.fixed.size": "2"})
FIXED_DECIMAL = dataclasses.replace(
    decimal(1), parameters={"scale": "1", "connect.fixed.size": "3"}
)


@pytest.mark.parametrize(
    ("schema", "value", "expected"),
    [
        (INT32, 0, "00"),
        (INT32, -1, "01"),
        (INT32, 1, "02"),
        (INT32, -64, "7f"),
        (INT32, 64, "80 01"),
        (INT8, -3, "05"),
        (INT64, 2**63 - 1, "fe ff ff ff ff ff ff ff ff 01"),
        (INT64, -(2**63), "ff ff ff ff ff ff ff ff ff 01"),
        (BOOLEAN, True, "01"),
        (BOOLEAN, False, "00"),
        (FLOAT32, 1.5, "00 00 c0 3f"),
        (FLOAT64, -2.0, "00 00 00 00 00 00 00 c0"),
        (STRING, "foo", "06 66 6f 6f"),
        (STRING, "", "00"),
        (BYTES, b"\xff\x00", "04 ff 00"),
        (OPTIONAL_STRING, None, "00"),
        (OPTIONAL_STRING, "a", "02 02 61"),
        (WITH_DEFAULT, None, "02"),
        (WITH_DEFAULT, 3, "00 06"),
        (array(INT64), [3, 27], "04 06 36 00"),
        (array(INT64), [], "00"),
        (array(OPTIONAL_INT), [None], "02 00 00"),
        (map_of(STRING, INT32), [("a", 1)], "02 02 61 02 00"),
        (map_of(STRING, INT32), [("a", 1), ("a", 2)], "02 02 61 04 00"),
        (map_of(INT32, STRING), [(1, "a")], "02 02 02 61 00"),
        (struct(Field("a", INT64), Field("b", STRING)), {"a": 27, "b": "foo"}, "36 06 66 6f 6f"),
        (struct(), {}, ""),
        (DATE, dt.date(1970, 1, 3), "04"),
        (TIME, dt.time(0, 0, 0, 1000), "02"),
        (TIMESTAMP, dt.datetime(1970, 1, 1, 0, 0, 1, tzinfo=dt.UTC), "d0 0f"),
        (decimal(2), Decimal("-1.28"), "02 80"),
        (FIXED, b"ab", "61 62"),
        (FIXED_DECIMAL, Decimal("-0.2"), "ff ff fe"),
        (FIXED_DECIMAL, Decimal("25.5"), "00 00 ff"),
    ],
    ids=str,
)
def test_datums_of_the_specification(schema: Schema, value: object, expected: str):
    """Made by hand from the specification's rules; its own examples are among them."""
    assert [bytes.fromhex(expected)] == datums(schema, column(schema, value))


def test_a_union_has_the_number_of_its_branch():
    """The first field that is set is the value; with none the union is null, if it may be."""
    kind = union(Field("int", OPTIONAL_INT), Field("string", OPTIONAL_STRING))
    given = column(kind, {"int": None, "string": "a"}, {"int": 1, "string": "b"})
    nothing = column(kind, {"int": None, "string": None}, None)

    assert [b"\x02\x02a", b"\x00\x02"] == datums(kind, given)
    assert [b"\x04\x02a", b"\x02\x02"] == datums(kind.as_optional(), given)
    assert [b"\x00", b"\x00"] == datums(kind.as_optional(), nothing)
    with pytest.raises(RecordError, match="Found null value"):
        datums(kind, nothing)


def test_enums_are_symbols_only_when_asked_for():
    """Else they are the strings that they are for Connect."""
    given = column(ENUM, "B", "A")

    assert [b"\x02B", b"\x02A"] == datums(ENUM, given)
    assert [b"\x02", b"\x00"] == datums(ENUM, given, AvroRules(enums=True))
    with pytest.raises(RecordError, match="not one of the symbols A, B"):
        datums(ENUM, column(ENUM, "C"), AvroRules(enums=True))


def test_a_null_becomes_the_default_of_its_field():
    """As a struct of Connect's does, unless that is to be ignored; elements of arrays do not."""
    inner = dataclasses.replace(struct(Field("x", INT32), name="n.In"), optional=True)
    default = dataclasses.replace(inner, default={"x": 7})
    kind = struct(Field("a", WITH_DEFAULT), Field("b", default), Field("c", array(WITH_DEFAULT)))
    given = column(kind, {"a": None, "b": None, "c": [None]})

    filled = {"a": 5, "b": {"x": 7}, "c": [None]}
    assert [filled] == read_back(kind, given)
    assert [{"a": None, "b": None, "c": [None]}] == read_back(
        kind, given, AvroRules(defaults=False)
    )


INNER = struct(Field("x", INT32), name="n.In")


@pytest.mark.parametrize(
    ("schema", "values", "row", "reason"),
    [
        (INT32, [1, None], 1, "Found null value for non-optional schema"),
        (struct(Field("a", INT32)), [{"a": 1}, None], 1, "Found null value"),
        (
            struct(Field("a", INT32)),
            [{"a": 1}, {"a": None}],
            1,
            "Found null value.*The field is a.",
        ),
        (array(INT32), [[1, 1], [], [2, None]], 2, "Found null value"),
        (map_of(INT32, INT32), [[(1, 1)], [(2, None)]], 1, "Found null value"),
        (array(array(INNER)), [[], [[{"x": 1}], [{"x": None}]]], 1, "The field is x."),
        (FIXED, [b"ab", b"abc"], 1, "A value does not have the 2 bytes of its fixed type."),
        (FIXED_DECIMAL, [Decimal(1), Decimal(10**7)], 1, "A value does not have the 3 bytes"),
    ],
)
def test_errors_name_the_row(schema: Schema, values: list[Any], row: int, reason: str):
    """That of the whole value, whatever the depth of what is wrong."""
    loose = pa.array(values, _nullable(arrow_type(schema)))

    with pytest.raises(RecordError, match=reason) as caught:
        datums(schema, loose)

    assert row == caught.value.row


def _nullable(kind: pa.DataType) -> pa.DataType:
    """*kind*, which Arrow then lets hold nulls anywhere."""
    if pa.types.is_struct(kind):
        return pa.struct([(each.name, _nullable(each.type)) for each in kind])
    if pa.types.is_map(kind):
        return pa.map_(kind.key_type, _nullable(kind.item_type))
    return pa.list_(_nullable(kind.value_type)) if pa.types.is_list(kind) else kind


def test_what_a_null_struct_holds_is_not_looked_at():
    """Arrow keeps values below a null; they may be anything."""
    items = pa.array([[1], [None]], pa.list_(pa.int32()))
    held = pa.StructArray.from_arrays([items], names=["a"], mask=pa.array([False, True]))
    outer = pa.StructArray.from_arrays([held], names=["s"])
    kind = struct(Field("s", struct(Field("a", array(INT32)), name="n.In").as_optional()))

    assert [b"\x02\x02\x02\x00", b"\x00"] == datums(kind, outer)


def test_a_column_of_another_type_is_refused():
    """In Confluent's words, with the first row that has a value."""
    with pytest.raises(
        RecordError, match=r"Invalid type for INT32: class java.lang.String"
    ) as caught:
        datums(OPTIONAL_INT, pa.array([None, "x"]))

    assert 1 == caught.value.row


def test_a_column_of_nulls_only_is_of_any_type():
    """Arrow has a type for it."""
    assert [b"\x00", b"\x00"] == datums(OPTIONAL_STRING, pa.nulls(2))


@given(some.lists(some.integers(-(2**63), 2**63 - 1) | some.integers(-200, 200)), some.data())
def test_varints_leave_out_rows_that_do_not_count(numbers: list[int], chance: some.DataObject):
    """The others are as they were."""
    rows = chance.draw(some.lists(some.booleans(), min_size=len(numbers), max_size=len(numbers)))
    wide = np.array(numbers, np.int64)

    everything = joined([varints(wide)], len(wide)).to_pylist()
    some_of_it = joined([varints(wide, np.array(rows, np.bool_))], len(wide)).to_pylist()

    pairs = zip(everything, rows, strict=True)
    assert [each if counts else b"" for each, counts in pairs] == some_of_it


@settings(max_examples=drawn(60))
@given(some.data())
def test_another_reader_reads_what_was_written(chance: some.DataObject):
    """Any schema, any values, and any part of a column."""
    schema = chance.draw(SCHEMAS)
    values = chance.draw(some.lists(values_of(schema), max_size=5))
    start = chance.draw(some.integers(0, len(values)))

    found = read_back(schema, column(schema, *values).slice(start))

    assert [as_read(schema, each) for each in values[start:]] == found
