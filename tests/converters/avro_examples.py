"""Schemas and columns for tests of the Avro converter."""

from __future__ import annotations

import datetime as dt
import io
from decimal import Decimal
from typing import Any

import pyarrow as pa
from fastavro import parse_schema, schemaless_reader
from hypothesis import strategies as some

from headrace.connect.schema import (
    BOOLEAN,
    BYTES,
    DATE,
    FLOAT64,
    INT32,
    INT64,
    STRING,
    TIME,
    TIMESTAMP,
    Field,
    Schema,
    SchemaType,
    arrow_type,
    decimal,
)
from headrace.converters.avro_schema import AvroRules, avro_schema
from headrace.converters.avro_values import avro_pieces, joined

USUAL = AvroRules()
INT8 = Schema(type=SchemaType.INT8)
INT16 = Schema(type=SchemaType.INT16)
FLOAT32 = Schema(type=SchemaType.FLOAT32)
PLAIN = (INT8, INT16, INT32, INT64, FLOAT32, FLOAT64, BOOLEAN, STRING, BYTES)
LOGICAL = (DATE, TIME, TIMESTAMP, decimal(0), decimal(3))


def struct(*fields: Field, name: str | None = "n.Row", **more: Any) -> Schema:  # noqa: ANN401
    """A schema of structs."""
    return Schema(type=SchemaType.STRUCT, fields=fields, name=name, **more)


def array(items: Schema, **more: Any) -> Schema:  # noqa: ANN401
    """A schema of arrays."""
    return Schema(type=SchemaType.ARRAY, value_schema=items, **more)


def map_of(keys: Schema, items: Schema, **more: Any) -> Schema:  # noqa: ANN401
    """A schema of maps."""
    return Schema(type=SchemaType.MAP, key_schema=keys, value_schema=items, **more)


def union(*fields: Field, **more: Any) -> Schema:  # noqa: ANN401
    """A schema of structs that are unions."""
    return struct(*fields, name="io.confluent.connect.avro.Union", **more)


def column(schema: Schema, *values: object) -> pa.Array:
    """*values* as a column of *schema*."""
    return pa.array(values, arrow_type(schema))


def datums(schema: Schema, values: pa.Array, rules: AvroRules = USUAL) -> list[bytes]:
    """The bytes of *values*, without what stands before them."""
    return joined(avro_pieces(schema, values, rules), len(values)).to_pylist()


def read_back(schema: Schema, values: pa.Array, rules: AvroRules = USUAL) -> list[Any]:
    """What fastavro reads, with our schema, of the bytes of *values*; all bytes must be read."""
    reported: Any = parse_schema(avro_schema(schema, rules))  # pyright: ignore[reportArgumentType]
    return [whole(each, reported) for each in datums(schema, values, rules)]


def whole(content: bytes, reported: Any) -> Any:  # noqa: ANN401
    """The one datum that *content* is."""
    stream = io.BytesIO(content)
    found = schemaless_reader(stream, reported, None)
    assert not stream.read()
    return found


def maybe(inner: some.SearchStrategy[Schema]) -> some.SearchStrategy[Schema]:
    """*inner*, or the same with null."""
    return some.one_of(inner, inner.map(Schema.as_optional))


def structs(inner: some.SearchStrategy[Schema]) -> some.SearchStrategy[Schema]:
    """Structs without a name."""
    members = some.lists(maybe(inner), min_size=1, max_size=4)
    return members.map(
        lambda each: struct(*(Field(f"f{at}", one) for at, one in enumerate(each)), name=None)
    )


LEAVES = some.sampled_from([*PLAIN, *LOGICAL])
INNER = some.deferred(
    lambda: some.one_of(
        LEAVES,
        LEAVES,
        maybe(INNER).map(array),
        some.builds(map_of, some.sampled_from([STRING, INT32, INT64]), maybe(INNER)),
        structs(INNER),
    )
)
SCHEMAS = structs(INNER)
"""Any structs that files have, of some depth."""

_INTEGERS = {SchemaType.INT8: 8, SchemaType.INT16: 16, SchemaType.INT32: 32, SchemaType.INT64: 64}
_LOGICAL_VALUES: dict[str | None, some.SearchStrategy[object]] = {
    DATE.name: some.dates(),
    TIME.name: some.integers(0, 86_399_999).map(
        lambda ms: (dt.datetime(2000, 1, 1) + dt.timedelta(milliseconds=ms)).time()  # noqa: DTZ001
    ),
    TIMESTAMP.name: some.integers(-(10**13), 10**13).map(
        lambda ms: dt.datetime(1970, 1, 1, tzinfo=dt.UTC) + dt.timedelta(milliseconds=ms)
    ),
}
_PLAIN_VALUES: dict[SchemaType, some.SearchStrategy[object]] = {
    SchemaType.FLOAT32: some.floats(width=32, allow_nan=False),
    SchemaType.FLOAT64: some.floats(allow_nan=False),
    SchemaType.BOOLEAN: some.booleans(),
    SchemaType.STRING: some.text(),
    SchemaType.BYTES: some.binary(),
}


def values_of(schema: Schema) -> some.SearchStrategy[Any]:
    """Values of *schema* as Arrow takes them."""
    found = _values_of(schema)
    return some.none() | found if schema.optional else found


def _values_of(schema: Schema) -> some.SearchStrategy[Any]:
    if schema.type is SchemaType.STRUCT:
        return some.fixed_dictionaries(
            {each.name: values_of(each.schema) for each in schema.fields}
        )
    if schema.value_schema is not None:
        values = values_of(schema.value_schema)
        if schema.key_schema is None:
            return some.lists(values, max_size=3)
        return some.dictionaries(values_of(schema.key_schema), values, max_size=3).map(
            lambda found: list(found.items())
        )
    if schema.type in _INTEGERS and schema.name is None:
        most = 2 ** (_INTEGERS[schema.type] - 1)
        return some.integers(-most, most - 1)
    if "scale" in schema.parameters:
        scale = int(schema.parameters["scale"])
        most = 10**38 - 1
        return some.integers(-most, most).map(lambda number: _with_scale(number, scale))
    found = _LOGICAL_VALUES.get(schema.name)
    return _PLAIN_VALUES[schema.type] if found is None else found


def _with_scale(number: int, scale: int) -> Decimal:
    digits = tuple(int(digit) for digit in str(abs(number)))
    return Decimal((int(number < 0), digits, -scale))


def as_read(schema: Schema, value: Any) -> Any:  # noqa: ANN401
    """What fastavro reads where *value* was written."""
    if value is None:
        return None
    if schema.type is SchemaType.STRUCT:
        return {each.name: as_read(each.schema, value[each.name]) for each in schema.fields}
    if schema.value_schema is None:
        return value
    if schema.key_schema is None:
        return [as_read(schema.value_schema, each) for each in value]
    entries = [(key, as_read(schema.value_schema, each)) for key, each in value]
    if schema.key_schema.type is SchemaType.STRING:
        return dict(entries)
    return [{"key": key, "value": each} for key, each in entries]
