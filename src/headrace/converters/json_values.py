"""Columns of Connect values with a schema as JSON, column by column, whatever their depth."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headrace.connect.arrow_lists import opened
from headrace.connect.errors import RecordError
from headrace.connect.java_text import json_quoted
from headrace.connect.schema import Schema, SchemaType, arrow_type
from headrace.converters.base64_text import base64_texts
from headrace.converters.column_types import check_type
from headrace.converters.columns import as_binary, is_bytes, is_text, refusal
from headrace.converters.decimals import unscaled_bytes
from headrace.converters.error_places import in_field, in_rows, row_at
from headrace.converters.json_escaping import escaped
from headrace.converters.json_members import last_of_each
from headrace.converters.json_pieces import Pieces, joined
from headrace.converters.json_text import json_floats, json_numbers

_NULL = b"null"


@dataclass(frozen=True, slots=True, kw_only=True)
class JsonRules:
    """What a converter's settings say about values."""

    numeric_decimals: bool = False
    defaults: bool = True


def json_pieces(schema: Schema, values: pa.Array, rules: JsonRules) -> Pieces:
    """The JSON of each of *values*, which have *schema*; no row of it is null.

    Raises :class:`~headrace.connect.errors.RecordError` in Connect's words, with the first row that a
    column is refused for.
    """
    if pa.types.is_null(values.type):
        values = values.cast(arrow_type(schema))
    check_type(schema, values)
    if not values.null_count:
        return _present(schema, values, rules)
    instead = _in_place_of_null(schema, values, rules)
    if values.null_count == len(values):
        return (instead,)
    if schema.type is not SchemaType.STRUCT:
        return (joined(_present(schema, values, rules), len(values)).fill_null(instead),)
    # What a null struct has as members counts for nothing, so they must not be looked at.
    valid = values.is_valid().to_numpy(zero_copy_only=False)
    rows = np.flatnonzero(valid)
    with in_rows(lambda row: int(rows[row])):
        pieces = _present(schema, values.drop_null(), rules)
    places = pa.array(np.cumsum(valid) - 1, mask=~valid)
    return (joined(pieces, len(rows)).take(places).fill_null(instead),)


def default_json(schema: Schema, rules: JsonRules) -> bytes:
    """The JSON of the default of *schema*, which has one."""
    column = pa.array([schema.default], arrow_type(schema))
    return joined(json_pieces(schema, column, rules), 1)[0].as_py()


def _in_place_of_null(schema: Schema, values: pa.Array, rules: JsonRules) -> bytes:
    if schema.default is not None and rules.defaults:
        return default_json(schema, rules)
    if schema.optional:
        return _NULL
    raise RecordError(
        "Conversion error: null value for field that is required and has no default value",
        row=pc.index(values.is_null(), True).as_py(),
    )


def _present(schema: Schema, values: pa.Array, rules: JsonRules) -> Pieces:
    """The JSON of *values* of the right type, nulls still null; a column of structs has none."""
    write = _NESTED.get(schema.type)
    if write is not None:
        return write(schema, values, rules)
    kind = values.type
    if pa.types.is_decimal(kind):
        return _decimals(values, rules)
    if is_text(kind):
        return b'"', escaped(values), b'"'
    if is_bytes(kind):
        return b'"', base64_texts(as_binary(values)), b'"'
    if pa.types.is_floating(kind):
        return (json_floats(values),)
    if pa.types.is_temporal(kind):
        values = values.cast(pa.int64() if pa.types.is_timestamp(kind) else pa.int32())
    return (json_numbers(values),)


def _decimals(values: pa.Array, rules: JsonRules) -> Pieces:
    if rules.numeric_decimals:
        # Arrow writes decimals as Java's BigDecimal does, exponents included.
        return (as_binary(values.cast(pa.utf8())),)
    return b'"', base64_texts(unscaled_bytes(values)), b'"'


def _structs(schema: Schema, values: pa.Array, rules: JsonRules) -> Pieces:
    if [each.name for each in schema.fields] != [each.name for each in values.type]:
        raise refusal("Mismatching schema.", values)
    pieces: Pieces = (b"{",)
    for index, each in enumerate(schema.fields):
        name = f"{',' if index else ''}{json_quoted(each.name)}:".encode()
        with in_field(each.name):
            pieces += (name, *json_pieces(each.schema, values.field(index), rules))
    return (*pieces, b"}")


def _arrays(schema: Schema, values: pa.Array, rules: JsonRules) -> Pieces:
    assert schema.value_schema is not None
    borders, items = opened(values)
    with in_rows(row_at(borders)):
        pieces = json_pieces(schema.value_schema, items, rules)
    return b"[", _listed(borders, joined(pieces, len(items)), values), b"]"


def _maps(schema: Schema, values: pa.Array, rules: JsonRules) -> Pieces:
    assert schema.key_schema is not None
    assert schema.value_schema is not None
    borders, entries = opened(values)
    as_object = schema.key_schema.type is SchemaType.STRING
    if as_object:
        borders, entries = last_of_each(borders, entries)
    with in_rows(row_at(borders)):
        keys = json_pieces(schema.key_schema, entries.field(0), rules)
        items = json_pieces(schema.value_schema, entries.field(1), rules)
    pair: Pieces = (*keys, b":", *items) if as_object else (b"[", *keys, b",", *items, b"]")
    before, after = (b"{", b"}") if as_object else (b"[", b"]")
    return before, _listed(borders, joined(pair, len(entries)), values), after


_NESTED: Mapping[SchemaType, Callable[[Schema, pa.Array, JsonRules], Pieces]] = {
    SchemaType.STRUCT: _structs,
    SchemaType.ARRAY: _arrays,
    SchemaType.MAP: _maps,
}


def _listed(borders: np.ndarray, texts: pa.BinaryArray, values: pa.Array) -> pa.BinaryArray:
    """The texts of each row of *values* with commas between them; null rows are null."""
    lists = pa.ListArray.from_arrays(pa.array(borders), texts)
    column = pc.binary_join(lists, b",")
    return pc.if_else(values.is_valid(), column, None) if values.null_count else column
