"""Our converters asked as the Java judge is, for answers that can be compared."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import pyarrow as pa

from headrace.connect import columns
from headrace.connect.converting import ColumnarHeaderConverter
from headrace.connect.errors import RecordError
from headrace.connect.record import Header
from headrace.connect.schema import Field, Schema, arrow_type
from headrace.converters import make_converter, make_header_converter
from judges.java_judge import Refusal
from judges.told import Told

JSON = "org.apache.kafka.connect.json.JsonConverter"
Answers = list["bytes | Refusal | None"]


def ours(name: str, values: Sequence[Told], **config: str) -> Answers:
    """What our converter gives for *values*: in one column, and for each alone where one is refused."""
    converter = make_converter(name, _dotted(config), is_key=False)
    schema = values[0].schema
    column = column_of(values)
    try:
        return converter.encode("t", schema, column).to_pylist()
    except RecordError as error:
        if len(values) == 1:
            return [Refusal(error.reason)]
        return [answer for each in values for answer in ours(name, [each], **config)]


def our_plain(name: str, values: Sequence[Told], **config: str) -> Answers:
    """What our converter gives for each of *values* as Python has it, without any schema."""
    converter = make_converter(name, _dotted(config), is_key=False)
    found: Answers = []
    for row in column_of(values).to_pylist(maps_as_pydicts="strict"):
        try:
            found += converter.encode("t", None, columns.column_of(None, [row])).to_pylist()
        except RecordError as error:
            found.append(Refusal(error.reason))
    return found


def our_headers(name: str, values: Sequence[Told], **config: str) -> Answers:
    """The same for a converter of headers, which is asked for each value as Python has it."""
    converter = make_header_converter(name, _dotted(config))
    rows = column_of(values).to_pylist(maps_as_pydicts="strict")
    found: Answers = []
    for told, row in zip(values, rows, strict=True):
        try:
            found.append(converter.encode_header("t", Header("h", row, told.schema)))
        except RecordError as error:
            found.append(Refusal(error.reason))
    return found


def our_header_columns(name: str, values: Sequence[Told], **config: str) -> Answers:
    """The same for a converter of headers that is asked for all values at once."""
    converter = make_header_converter(name, _dotted(config))
    assert isinstance(converter, ColumnarHeaderConverter)
    return converter.encode_headers("t", "h", values[0].schema, column_of(values)).to_pylist()


def column_of(values: Sequence[Told]) -> pa.Array:
    """*values* in one column that may hold a null anywhere."""
    return pa.array([each.value for each in values], arrow_type(_all_nullable(values[0].of)))


def _dotted(config: dict[str, str]) -> dict[str, str]:
    return {key.replace("_", "."): value for key, value in config.items()}


def _all_nullable(schema: Schema) -> Schema:
    return dataclasses.replace(
        schema,
        optional=True,
        fields=tuple(Field(each.name, _all_nullable(each.schema)) for each in schema.fields),
        value_schema=schema.value_schema and _all_nullable(schema.value_schema),
    )
