"""Columns of Connect values with a schema as JSON, column by column, whatever their depth."""

from __future__ import annotations

import binascii
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headrace.connect.columns import opened
from headrace.connect.errors import RecordError
from headrace.connect.json_document import json_quoted
from headrace.connect.schema import Schema, SchemaType, arrow_type
from headrace.converters.columns import (
    as_binary,
    check_type,
    in_field,
    in_rows,
    is_bytes,
    is_text,
    last_of_each,
    refusal,
    row_at,
    unscaled_bytes,
)
from headrace.converters.json_escaping import escaped
from headrace.java.numbers import java_floats

Pieces = tuple[bytes | pa.BinaryArray, ...]
"""The pieces of each row's text, in order. Where a column has a null, the whole row is null.

Structs are joined only once, whatever their depth, because the pieces of a member are pieces of its struct.
"""

# No pa.scalar: making one imports pandas, which takes a second and which an idle worker never needs.
_NOTHING = b""


def joined(pieces: Pieces, rows: int) -> pa.BinaryArray:
    """*pieces* as one column of *rows* rows; a single column is returned as it is."""
    merged = list(_merged(pieces))
    if len(merged) == 1 and not isinstance(merged[0], bytes):
        return merged[0]
    if all(isinstance(piece, bytes) for piece in merged):
        return pa.repeat(pa.scalar(b"".join(_constants(merged))), rows)
    operands = [pa.scalar(each) if isinstance(each, bytes) else each for each in merged]
    return pc.binary_join_element_wise(*operands, _NOTHING)


def _merged(pieces: Pieces) -> Iterator[bytes | pa.BinaryArray]:
    """*pieces* with neighbouring constants in one, and without empty ones."""
    waiting = b""
    for piece in pieces:
        if isinstance(piece, bytes):
            waiting += piece
            continue
        if waiting:
            yield waiting
        waiting = b""
        yield piece
    if waiting:
        yield waiting


def _constants(pieces: Sequence[bytes | pa.BinaryArray]) -> Iterator[bytes]:
    return (piece for piece in pieces if isinstance(piece, bytes))


_GROUP = 3
_CHARACTERS = 4
_PADDING = ord("=")


def base64_texts(values: pa.BinaryArray) -> pa.BinaryArray:
    """Each of *values* in base64 with the standard alphabet, padded; nulls stay null.

    Rows are laid out with zeros up to a multiple of three bytes, so that the base64 of all of them is that
    of each, one after the other; then only their last characters have to become padding.
    """
    offsets, content = values.buffers()[1:]
    if not len(values) or offsets is None:
        return values
    first = values.offset
    starts = np.frombuffer(offsets, np.int32)[first : first + len(values) + 1].astype(np.int64)
    lengths = np.diff(starts)
    groups = -(-lengths // _GROUP)
    borders = np.concatenate(([0], np.cumsum(groups)))
    padded = np.zeros(int(borders[-1]) * _GROUP, np.uint8)
    octets = np.frombuffer(content or b"", np.uint8)[starts[0] : starts[-1]]
    moved = np.repeat(borders[:-1] * _GROUP - (starts[:-1] - starts[0]), lengths)
    padded[np.arange(len(octets)) + moved] = octets
    text = np.frombuffer(bytearray(binascii.b2a_base64(padded.data, newline=False)), np.uint8)
    ends = borders[1:] * _CHARACTERS
    text[ends[lengths % _GROUP != 0] - 1] = _PADDING
    text[ends[lengths % _GROUP == 1] - 2] = _PADDING
    # 64-bit offsets, so that Arrow reports more than 2 GB instead of an overflow of the offsets.
    column = pa.Array.from_buffers(
        pa.large_binary(),
        len(values),
        [None, pa.py_buffer(borders * _CHARACTERS), pa.py_buffer(text)],
    ).cast(pa.binary())
    return pc.if_else(values.is_valid(), column, None) if values.null_count else column


# No pa.scalar: making one imports pandas, which takes a second and which an idle worker never needs.
_QUOTE = b'"'


def json_strings(values: pa.Array) -> pa.BinaryArray:
    """Each of *values*, a column of text, as a JSON string with its quotes; nulls stay null."""
    return pc.binary_join_element_wise(_QUOTE, escaped(values), _QUOTE, _NOTHING)


def json_numbers(values: pa.Array) -> pa.BinaryArray:
    """Integers or booleans as JSON; nulls stay null."""
    return as_binary(values.cast(pa.utf8()))


def json_floats(values: pa.Array) -> pa.BinaryArray:
    """Floating-point numbers as Java writes them; NaN and infinities become JSON strings."""
    texts = as_binary(java_floats(values))
    odd = pc.invert(pc.is_finite(values)).fill_null(False)  # noqa: FBT003 (the value filled in)
    quoted = pc.binary_join_element_wise(_QUOTE, texts, _QUOTE, _NOTHING)
    return pc.if_else(odd, quoted, texts) if pc.any(odd).as_py() else texts


def json_bytes(values: pa.Array) -> pa.BinaryArray:
    """Bytes as JSON strings of base64; nulls stay null."""
    texts = base64_texts(as_binary(values))
    return pc.binary_join_element_wise(_QUOTE, texts, _QUOTE, _NOTHING)


_NULL = b"null"


@dataclass(frozen=True, slots=True, kw_only=True)
class JsonRules:
    """A converter's settings about values."""

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
    # The members of a null struct have no meaning, so they must not be checked.
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
