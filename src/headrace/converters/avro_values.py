"""Columns of Connect values in Avro's binary form, column by column, whatever their depth."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from headrace.connect.columns import opened
from headrace.connect.errors import RecordError
from headrace.connect.schema import Field, Schema, SchemaType, arrow_type
from headrace.converters.avro_schema import (
    AvroRules,
    enum_name,
    enum_symbols,
    fixed_size,
    has_text_keys,
    is_null_first,
    is_union,
)
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
    widened,
)

Rows = npt.NDArray[np.bool_]
"""One boolean per row: whether the row counts."""

_SEVEN = np.uint64(7)
_LOW = np.uint64(0x7F)
# No pa.scalar: making one imports pandas, which takes a second and which an idle worker never needs.
_NOTHING = b""


@dataclass(frozen=True, slots=True)
class Padded:
    """Bytes of up to *octets.shape[1]* per row; *kept* says which of them are written (``None``: all)."""

    octets: npt.NDArray[np.uint8]
    kept: npt.NDArray[np.bool_] | None = None


Piece = Padded | pa.BinaryArray
"""The pieces of each row's bytes, in order; a column has no nulls."""


def varints(numbers: npt.NDArray[np.signedinteger], rows: Rows | None = None) -> Padded:
    """Integers in Avro's variable length, zigzag coded; nothing in rows that do not count."""
    wide = numbers.astype(np.int64)
    left = ((wide << 1) ^ (wide >> 63)).view(np.uint64)
    width = max(1, -(-int(left.max(initial=0)).bit_length() // 7))
    octets = np.empty((len(wide), width), np.uint8)
    kept = np.empty((len(wide), width), np.bool_)
    kept[:, 0] = True if rows is None else rows
    for place in range(width):
        octets[:, place] = left & _LOW
        left = left >> _SEVEN
        if place + 1 < width:
            more = left > 0
            octets[:, place] |= more.view(np.uint8) << 7
            kept[:, place + 1] = more & kept[:, place]
    return Padded(octets, None if width == 1 and rows is None else kept)


def fixed(octets: npt.NDArray[np.uint8], rows: Rows | None = None) -> Padded:
    """As many bytes for each row as *octets* has columns; nothing in rows that do not count."""
    if rows is None:
        return Padded(octets)
    return Padded(octets, np.broadcast_to(rows[:, None], octets.shape))


def constant(content: bytes, count: int, rows: Rows | None = None) -> Padded:
    """The same bytes in *count* rows; nothing in rows that do not count."""
    octets = np.frombuffer(content, np.uint8)
    return fixed(np.broadcast_to(octets, (count, len(octets))), rows)


def sized(texts: pa.BinaryArray, rows: Rows | None = None) -> tuple[Piece, Piece]:
    """Byte strings after their lengths; nothing in rows that do not count or are null."""
    chosen = bare(texts, rows)
    lengths = pc.binary_length(chosen).to_numpy(zero_copy_only=False)
    return varints(lengths, rows), chosen


def bare(texts: pa.BinaryArray, rows: Rows | None = None) -> pa.BinaryArray:
    """Byte strings without their lengths; nothing in rows that do not count or are null."""
    if rows is not None and not rows.all():
        texts = pc.if_else(pa.array(rows), texts, None)
    return texts.fill_null(b"") if texts.null_count else texts


def joined(pieces: Sequence[Piece], rows: int) -> pa.BinaryArray:
    """*pieces* as one column of *rows* rows."""
    columns = list(_columns(pieces))
    if not columns:
        return pa.repeat(_NOTHING, rows)
    return columns[0] if len(columns) == 1 else pc.binary_join_element_wise(*columns, _NOTHING)


def _columns(pieces: Sequence[Piece]) -> Iterator[pa.BinaryArray]:
    """*pieces* as columns, neighbouring matrices in one."""
    waiting = list[Padded]()
    for piece in pieces:
        if isinstance(piece, Padded):
            waiting.append(piece)
            continue
        if waiting:
            yield _unpadded(waiting)
        waiting = []
        yield piece
    if waiting:
        yield _unpadded(waiting)


def _unpadded(matrices: Sequence[Padded]) -> pa.BinaryArray:
    octets = np.concatenate([each.octets for each in matrices], axis=1)
    count, width = octets.shape
    borders = np.arange(count + 1, dtype=np.int64) * width
    if any(each.kept is not None for each in matrices):
        kept = np.concatenate([_all_kept(each) for each in matrices], axis=1)
        np.cumsum(np.count_nonzero(kept, axis=1), out=borders[1:])
        octets = octets[kept]
    # 64-bit offsets, so that Arrow reports more than 2 GB instead of an overflow of the offsets.
    buffers = [None, pa.py_buffer(borders), pa.py_buffer(np.ascontiguousarray(octets))]
    return pa.Array.from_buffers(pa.large_binary(), count, buffers).cast(pa.binary())


def _all_kept(piece: Padded) -> npt.NDArray[np.bool_]:
    return np.ones(piece.octets.shape, np.bool_) if piece.kept is None else piece.kept


Pieces = tuple[Piece, ...]
_NULL = "Found null value for non-optional schema"


def avro_pieces(
    schema: Schema, values: pa.Array, rules: AvroRules, rows: Rows | None = None
) -> Pieces:
    """The bytes of each of *values*, which have *schema*, as ``avro_schema`` lays them out.

    *rows* are those that count, ``None`` is all of them; the others get no bytes and may hold anything.
    Raises :class:`~headrace.connect.errors.RecordError` in Confluent's words, with the first row that a
    column is refused for.
    """
    if pa.types.is_null(values.type):
        values = values.cast(arrow_type(schema))
    check_type(schema, values)
    if is_union(schema):
        return _unions(schema, values, rules, rows)
    valid = _valid(values)
    if not schema.optional:
        _refuse_nulls(valid, rows)
        return _present(schema, values, rules, rows)
    null = 0 if is_null_first(schema) else 1
    branches = np.full(len(values), 1 - null)
    branches[~valid if valid is not None else []] = null
    return varints(branches, rows), *_present(schema, values, rules, _both(rows, valid))


def _present(schema: Schema, values: pa.Array, rules: AvroRules, rows: Rows | None) -> Pieces:
    """The bytes of *values*, none of which is null in *rows*."""
    write = _NESTED.get(schema.type)
    if write is not None:
        return write(schema, values, rules, rows)
    if enum_name(schema, rules):
        return (varints(_places(schema, values, rows), rows),)
    kind = values.type
    if pa.types.is_decimal(kind) or is_bytes(kind):
        return _bytes(schema, values, rows)
    if is_text(kind):
        return sized(as_binary(values), rows)
    if pa.types.is_temporal(kind):
        values = values.cast(pa.int64() if pa.types.is_timestamp(kind) else pa.int32())
    filled = values.fill_null(False if pa.types.is_boolean(kind) else 0)
    numbers = filled.to_numpy(zero_copy_only=False)
    if pa.types.is_integer(values.type):
        return (varints(numbers, rows),)
    little = np.ascontiguousarray(numbers, numbers.dtype.newbyteorder("<"))
    octets = little.view(np.uint8).reshape(len(values), little.itemsize)
    return (fixed(octets, rows),)


def _bytes(schema: Schema, values: pa.Array, rows: Rows | None) -> Pieces:
    content = unscaled_bytes(values) if pa.types.is_decimal(values.type) else as_binary(values)
    size = fixed_size(schema)
    if size is None:
        return sized(content, rows)
    if pa.types.is_decimal(values.type):
        content = widened(values, content, size)
    wrong = pc.fill_null(pc.not_equal(pc.binary_length(content), size), False)  # noqa: FBT003
    _refuse(
        _both(rows, wrong.to_numpy(zero_copy_only=False)),
        f"A value does not have the {size} bytes of its fixed type.",
    )
    return (bare(content, rows),)


def _places(schema: Schema, values: pa.Array, rows: Rows | None) -> np.ndarray:
    """Which of an enum's symbols each of *values* is."""
    symbols = enum_symbols(schema)
    found = pc.index_in(values.cast(pa.utf8()), pa.array(symbols, pa.utf8()))
    unknown = pc.and_(found.is_null(), values.is_valid()).to_numpy(zero_copy_only=False)
    _refuse(_both(rows, unknown), f"A value is not one of the symbols {', '.join(symbols)}.")
    return found.fill_null(0).to_numpy(zero_copy_only=False)


def _structs(schema: Schema, values: pa.Array, rules: AvroRules, rows: Rows | None) -> Pieces:
    pieces: Pieces = ()
    for each, column in _members(schema, values):
        with in_field(each.name):
            filled = _with_default(each.schema, column) if rules.defaults else column
            pieces += avro_pieces(each.schema, filled, rules, rows)
    return pieces


def _unions(schema: Schema, values: pa.Array, rules: AvroRules, rows: Rows | None) -> Pieces:
    """The bytes of the first field that is set, after the number of its branch."""
    first = 1 if schema.optional else 0
    nothing = len(schema.fields)
    chosen = np.full(len(values), nothing)
    members = list(_members(schema, values))
    for place in reversed(range(nothing)):
        chosen[members[place][1].is_valid().to_numpy(zero_copy_only=False)] = place
    chosen[values.is_null().to_numpy(zero_copy_only=False)] = nothing
    if not schema.optional:
        _refuse(_both(rows, chosen == nothing), _NULL)
    pieces: Pieces = (varints(np.where(chosen == nothing, 0, chosen + first), rows),)
    for place, (each, column) in enumerate(members):
        with in_field(each.name):
            # The branch is written already, so only the value of an optional field is left.
            counting = _both(rows, chosen == place)
            check_type(each.schema, column)
            pieces += _present(each.schema, column, rules, counting)
    return pieces


def _members(schema: Schema, values: pa.Array) -> list[tuple[Field, pa.Array]]:
    if [each.name for each in schema.fields] != [each.name for each in values.type]:
        raise refusal("Mismatching struct schema", values)
    return [(each, values.field(place)) for place, each in enumerate(schema.fields)]


def _arrays(schema: Schema, values: pa.Array, rules: AvroRules, rows: Rows | None) -> Pieces:
    assert schema.value_schema is not None
    borders, items = opened(_nulled(values, rows))
    with in_rows(row_at(borders)):
        pieces = avro_pieces(schema.value_schema, items, rules)
    return _block(borders, joined(pieces, len(items)), rows)


def _maps(schema: Schema, values: pa.Array, rules: AvroRules, rows: Rows | None) -> Pieces:
    assert schema.key_schema is not None
    assert schema.value_schema is not None
    borders, entries = opened(_nulled(values, rows))
    if has_text_keys(schema):
        borders, entries = last_of_each(borders, entries)
    with in_rows(row_at(borders)):
        keys = avro_pieces(schema.key_schema, entries.field(0), rules)
        found = avro_pieces(schema.value_schema, entries.field(1), rules)
    return _block(borders, joined((*keys, *found), len(entries)), rows)


def _block(borders: np.ndarray, items: pa.BinaryArray, rows: Rows | None) -> Pieces:
    """Each row's items as one block after their number, and the zero that ends the blocks."""
    counts = np.diff(borders)
    lists = pa.ListArray.from_arrays(pa.array(borders), items)
    texts = pc.binary_join(lists, b"")
    return varints(counts, counts > 0), texts, constant(b"\x00", len(counts), rows)


_NESTED: Mapping[SchemaType, Callable[[Schema, pa.Array, AvroRules, Rows | None], Pieces]] = {
    SchemaType.STRUCT: _structs,
    SchemaType.ARRAY: _arrays,
    SchemaType.MAP: _maps,
}


def _with_default(schema: Schema, values: pa.Array) -> pa.Array:
    """*values* of a struct's field, with the default of *schema*, if it has one, in place of nulls."""
    if schema.default is None or not values.null_count:
        return values
    kind = arrow_type(schema) if pa.types.is_null(values.type) else values.type
    default = pa.array([schema.default], kind)
    together = pa.concat_arrays([values.cast(kind), default])
    places = np.arange(len(values))
    places[values.is_null().to_numpy(zero_copy_only=False)] = len(values)
    return together.take(pa.array(places))


def _nulled(values: pa.Array, rows: Rows | None) -> pa.Array:
    """*values* with nulls in the rows that do not count, so that their elements are ignored."""
    if rows is None or rows.all():
        return values
    return values.take(pa.array(np.arange(len(values)), mask=~rows))


def _valid(values: pa.Array) -> Rows | None:
    return values.is_valid().to_numpy(zero_copy_only=False) if values.null_count else None


def _both(rows: Rows | None, others: Rows | None) -> Rows | None:
    if rows is None or others is None:
        return others if rows is None else rows
    return rows & others


def _refuse_nulls(valid: Rows | None, rows: Rows | None) -> None:
    if valid is not None:
        _refuse(_both(rows, ~valid), _NULL)


def _refuse(wrong: Rows | None, reason: str) -> None:
    if wrong is not None and wrong.any():
        raise RecordError(reason, row=int(wrong.argmax()))
