"""Nested values and decimals as JSON, against Kafka Connect and against a writer of one value at a time."""

from __future__ import annotations

import dataclasses
import datetime as dt
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

from converters.plain_json import plain_json
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
from headrace.converters import make_converter
from project.sampling import drawn


def struct(*fields: Field, **more: Any) -> Schema:  # noqa: ANN401
    """A schema of structs."""
    return Schema(type=SchemaType.STRUCT, fields=fields, **more)


def array(items: Schema, **more: Any) -> Schema:  # noqa: ANN401
    """A schema of arrays."""
    return Schema(type=SchemaType.ARRAY, value_schema=items, **more)


def map_of(keys: Schema, items: Schema, **more: Any) -> Schema:  # noqa: ANN401
    """A schema of maps."""
    return Schema(type=SchemaType.MAP, key_schema=keys, value_schema=items, **more)


def encoded(schema: Schema, values: pa.Array, **config: str) -> list[bytes | None]:
    """What the converter writes."""
    given = {key.replace("_", "."): value for key, value in config.items()}
    return make_converter("json", given, is_key=False).encode("t", schema, values).to_pylist()


INNER = struct(
    Field("x", dataclasses.replace(INT32, optional=True, default=5)),
    Field("y", OPTIONAL_STRING),
    optional=True,
    name="in",
)
OUTER = struct(
    Field("i", INNER),
    Field("l", array(FLOAT64.as_optional(), optional=True)),
    Field("m", map_of(STRING, INT64)),
    Field("n", map_of(INT32, INNER, optional=True)),
    Field("d", dataclasses.replace(decimal(0), optional=True, default=Decimal(7))),
    Field("ts", TIMESTAMP.as_optional()),
    Field("t", TIME),
    Field("day", DATE),
    Field('q"\n😀é', dataclasses.replace(BYTES, parameters={"a": "b"})),
    name="out",
    version=3,
    doc="dd",
)
RECORD = {
    "i": {"x": None, "y": 'a"b'},
    "l": [1.0, None, float("nan"), 1e10],
    "m": [('k"1😀\n', 2**40), ("", 2**41)],
    "n": [(1, {"x": None, "y": 'a"b'}), (2, None)],
    "d": None,
    "ts": None,
    "t": dt.time(0, 0, 1),
    "day": dt.date(1970, 1, 2),
    'q"\n😀é': b"\x01\x02\xff",
}
# These were written by Kafka Connect 4.3.1.
INNER_TOLD = (
    r'{"type":"struct","fields":[{"type":"int32","optional":true,"default":5,"field":"x"},'
    r'{"type":"string","optional":true,"field":"y"}],"optional":true,"name":"in"'
)
OUTER_TOLD = (
    r'{"type":"struct","fields":[' + INNER_TOLD + r',"field":"i"},'
    r'{"type":"array","items":{"type":"double","optional":true},"optional":true,"field":"l"},'
    r'{"type":"map","keys":{"type":"string","optional":false},'
    r'"values":{"type":"int64","optional":false},"optional":false,"field":"m"},'
    r'{"type":"map","keys":{"type":"int32","optional":false},"values":' + INNER_TOLD + r"},"
    r'"optional":true,"field":"n"},'
    r'{"type":"bytes","optional":true,"name":"org.apache.kafka.connect.data.Decimal","version":1,'
    r'"parameters":{"scale":"0"},"default":"Bw==","field":"d"},'
    r'{"type":"int64","optional":true,"name":"org.apache.kafka.connect.data.Timestamp","version":1,'
    r'"field":"ts"},'
    r'{"type":"int32","optional":false,"name":"org.apache.kafka.connect.data.Time","version":1,"field":"t"},'
    r'{"type":"int32","optional":false,"name":"org.apache.kafka.connect.data.Date","version":1,'
    r'"field":"day"},'
    r'{"type":"bytes","optional":false,"parameters":{"a":"b"},"field":"q\"\n\uD83D\uDE00é"}],'
    r'"optional":false,"name":"out","version":3,"doc":"dd"}'
)
PAYLOAD = (
    r'{"i":{"x":5,"y":"a\"b"},"l":[1.0,null,"NaN",1.0E10],'
    r'"m":{"k\"1\uD83D\uDE00\n":1099511627776,"":2199023255552},'
    r'"n":[[1,{"x":5,"y":"a\"b"}],[2,null]],"d":"Bw==","ts":null,"t":1000,"day":1,'
    r'"q\"\n\uD83D\uDE00é":"AQL/"}'
)


def test_a_nested_record_is_what_connect_writes():
    """Every byte of the envelope and of the payload, with defaults in place of nulls."""
    column = pa.array([RECORD], arrow_type(OUTER))
    whole = f'{{"schema":{OUTER_TOLD},"payload":{PAYLOAD}}}'
    assert [whole.encode()] == encoded(OUTER, column)
    assert [PAYLOAD.encode()] == encoded(OUTER, column, schemas_enable="false")


def test_settings_reach_what_is_inside():
    """Numbers for decimals, in defaults of the schema, too; and nulls that stay null."""
    column = pa.array([RECORD], arrow_type(OUTER))
    numeric = f'{{"schema":{OUTER_TOLD},"payload":{PAYLOAD}}}'.replace('"Bw=="', "7")
    assert [numeric.encode()] == encoded(OUTER, column, decimal_format="numeric")
    without = PAYLOAD.replace('"x":5', '"x":null').replace('"d":"Bw=="', '"d":null')
    assert [without.encode()] == encoded(
        OUTER, column, schemas_enable="false", replace_null_with_default="false"
    )


@pytest.mark.parametrize(
    ("number", "base64", "numeric"),
    [
        ("0E-10", b'"AA=="', b"0E-10"),
        ("0.0000000001", b'"AQ=="', b"1E-10"),
        ("12.5000000000", b'"HRqUogA="', b"12.5000000000"),
        ("-0.0000001000", b'"/Bg="', b"-1.000E-7"),
        ("0.0000100000", b'"AYag"', b"0.0000100000"),
        ("-12345678901234567890.1234567890", b'"/nEW8Ak8jB8RscD1Lg=="', None),
        ("0.0000000128", b'"AIA="', b"1.28E-8"),
        ("0.0000000127", b'"fw=="', b"1.27E-8"),
        ("-0.0000000128", b'"gA=="', b"-1.28E-8"),
        ("-0.0000000129", b'"/38="', b"-1.29E-8"),
    ],
)
def test_decimals_are_connects(number: str, base64: bytes, numeric: bytes | None):
    """As base64 of their unscaled bytes, or as Java writes them."""
    schema = decimal(10)
    column = pa.array([Decimal(number)], arrow_type(schema))
    assert [base64] == encoded(schema, column, schemas_enable="false")
    plain = encoded(schema, column, schemas_enable="false", decimal_format="NUMERIC")
    assert [numeric or number.encode()] == plain


def test_an_empty_struct_and_an_empty_list():
    """They have their own brackets."""
    empty = struct()
    expected = b'{"schema":{"type":"struct","fields":[],"optional":false},"payload":{}}'
    assert [expected] * 2 == encoded(empty, pa.array([{}, {}], pa.struct([])))
    assert [b"[]"] == encoded(
        array(STRING), pa.array([[]], pa.list_(pa.utf8())), schemas_enable="false"
    )


def test_a_default_list_replaces_null():
    """Defaults may be nested themselves."""
    schema = array(STRING, default=["x", "y"], optional=True)
    reported = b'{"type":"array","items":{"type":"string","optional":false},"optional":true,"default":["x","y"]}'
    expected = [
        b'{"schema":' + reported + b',"payload":["x","y"]}',
        b'{"schema":' + reported + b',"payload":[]}',
    ]
    assert expected == encoded(schema, pa.array([None, []], arrow_type(schema)))


def test_the_last_of_equal_keys_wins_in_the_place_of_the_first():
    """As in a Java map; an object has no member twice."""
    schema = map_of(STRING, INT32)
    rows = [
        [("a", 1), ("b", 2), ("a", 3)],
        [],
        [("b", 1), ("a", 2)],
        [("c", 1), ("c", 2), ("c", 3)],
    ]
    expected = [b'{"a":3,"b":2}', b"{}", b'{"b":1,"a":2}', b'{"c":3}']
    assert expected == encoded(schema, pa.array(rows, arrow_type(schema)), schemas_enable="false")


REQUIRED = [
    (struct(Field("a", STRING)), [{"a": "x"}, {"a": None}], 1, "The field is a"),
    (array(STRING), [["x"], [], ["y", None, "z"]], 2, None),
    (map_of(STRING, INT32), [[("a", 1)], [("a", None)]], 1, None),
    (map_of(INT32, STRING), [[(1, "a")], [(1, "b"), (2, None)]], 1, None),
    (
        struct(Field("o", struct(Field("l", array(INT32)), optional=True))),
        [{"o": None}, {"o": {"l": [1]}}, {"o": None}, {"o": {"l": [1, None]}}],
        3,
        "The field is l",
    ),
]


@pytest.mark.parametrize(("schema", "rows", "bad", "advice"), REQUIRED)
def test_a_required_null_inside_names_its_row(
    schema: Schema, rows: list[object], bad: int, advice: str | None
):
    """The row is that of the record, not of the element."""
    with pytest.raises(RecordError, match="null value for field that is required") as caught:
        encoded(schema, pa.array(rows, arrow_type(_all_nullable(schema))))
    assert bad == caught.value.row
    assert (advice or "") in (caught.value.advice or "")


def _all_nullable(schema: Schema) -> Schema:
    return dataclasses.replace(
        schema,
        optional=True,
        fields=tuple(Field(each.name, _all_nullable(each.schema)) for each in schema.fields),
        value_schema=schema.value_schema and _all_nullable(schema.value_schema),
    )


def test_members_of_a_null_struct_do_not_count():
    """A required member may be null there, because the struct is not."""
    schema = struct(Field("o", struct(Field("a", STRING), optional=True)))
    kind = pa.struct([pa.field("o", pa.struct([("a", pa.utf8())]))])
    rows = pa.array([{"o": None}, {"o": {"a": "x"}}], kind)
    assert [b'{"o":null}', b'{"o":{"a":"x"}}'] == encoded(schema, rows, schemas_enable="false")


@pytest.mark.parametrize(
    ("schema", "column", "sentence"),
    [
        (struct(Field("a", INT32)), pa.array([{"b": 1}]), "Mismatching schema."),
        (struct(), pa.array(["x"]), r"Invalid type for STRUCT: class java\.lang\.String"),
        (array(STRING), pa.array([[5]]), r"Invalid type for STRING: class java\.lang\.Long"),
        (
            decimal(10),
            pa.array([Decimal("1.5")]),
            "mismatching scale for given Decimal schema. Schema has scale 10, value has scale 1.",
        ),
    ],
)
def test_values_must_fit_inside(schema: Schema, column: pa.Array, sentence: str):
    """Connect's words for what does not."""
    with pytest.raises(RecordError, match=sentence):
        encoded(schema, column)


TEXT = some.text(some.characters(exclude_categories=["Cs"]), max_size=5)
LEAVES: list[tuple[Schema, some.SearchStrategy[Any]]] = [
    (INT64, some.integers(-(2**63), 2**63 - 1)),
    (Schema(type=SchemaType.INT8), some.integers(-128, 127)),
    (FLOAT64, some.floats()),
    (Schema(type=SchemaType.FLOAT32), some.floats(width=32)),
    (BOOLEAN, some.booleans()),
    (STRING, TEXT),
    (BYTES, some.binary(max_size=5)),
    (DATE, some.dates()),
    (TIME, some.times().map(lambda t: t.replace(microsecond=t.microsecond // 1000 * 1000))),
    (
        TIMESTAMP,
        some.datetimes(
            dt.datetime(1600, 1, 1),  # noqa: DTZ001
            dt.datetime(2400, 1, 1),  # noqa: DTZ001
            timezones=some.just(dt.UTC),
        ).map(lambda t: t.replace(microsecond=t.microsecond // 1000 * 1000)),
    ),
    (decimal(3), some.integers(-(10**37), 10**37).map(lambda n: Decimal(n).scaleb(-3))),
]
Typed = tuple[Schema, some.SearchStrategy[Any]]


@some.composite
def typed(draw: some.DrawFn, depth: int = 2) -> Typed:
    """A schema and its values."""
    kinds = ["leaf", "struct", "array", "map", "pairs"] if depth else ["leaf"]
    match draw(some.sampled_from(kinds)):
        case "struct":
            found = draw(_structs(depth))
        case "array":
            schema, values = draw(typed(depth - 1))
            found = array(schema), some.lists(values, max_size=3)
        case "map" | "pairs" as kind:
            schema, values = draw(typed(depth - 1))
            key, keys = (STRING, TEXT) if kind == "map" else (INT64, some.integers(0, 9))
            found = map_of(key, schema), some.lists(some.tuples(keys, values), max_size=3)
        case _:
            found = draw(some.sampled_from(LEAVES))
    schema, values = found
    return (schema.as_optional(), some.none() | values) if draw(some.booleans()) else found


@some.composite
def _structs(draw: some.DrawFn, depth: int) -> Typed:
    names = draw(some.lists(TEXT, max_size=3, unique=True))
    members = {name: draw(typed(depth - 1)) for name in names}
    schema = struct(*(Field(name, each) for name, (each, _) in members.items()))
    return schema, some.fixed_dictionaries({name: values for name, (_, values) in members.items()})


@settings(max_examples=drawn(150), deadline=None)
@given(found=typed(), data=some.data(), start=some.integers(0, 2), numeric=some.booleans())
def test_columns_are_written_as_each_value_alone(
    found: Typed,
    data: some.DataObject,
    start: int,
    numeric: bool,  # noqa: FBT001
):
    """Any schema, any values, slices included: byte for byte what the slow writer writes."""
    schema, values = found
    rows = data.draw(some.lists(values, max_size=5))
    column = pa.array(rows, arrow_type(schema)).slice(start)
    config = {"decimal_format": "NUMERIC" if numeric else "BASE64", "schemas_enable": "false"}
    expected = [plain_json(schema, row, numeric=numeric).encode() for row in column.to_pylist()]
    assert expected == encoded(schema, column, **config)
