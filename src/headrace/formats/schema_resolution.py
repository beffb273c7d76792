"""Values of one schema as values of another, as Avro resolves a writer's schema to a reader's. Pure.

Only what changes no value is done: fields are found by their names, unknown ones are left out, missing ones
are null or have their default, and numbers become wider. (Avro's specification, "Schema Resolution", which
also turns a long into a double.)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, cast

import numpy as np
import pyarrow as pa

from headrace.connect.columns import column_of, opened
from headrace.connect.errors import RecordError
from headrace.connect.schema import Field, Schema, SchemaType, arrow_type
from headrace.formats.avro.schema import ENUM, FIXED_SIZE, UNION

Resolve = Callable[[pa.Array], pa.Array]

_RECORD: Final = "The record"
_SYMBOL = f"{ENUM}."
_LOGICAL = "org.apache.kafka.connect.data."
_PLAIN: Final = ("", "")
_WIDER: Final[Mapping[SchemaType, frozenset[SchemaType]]] = {
    SchemaType.INT8: frozenset(
        (SchemaType.INT16, SchemaType.INT32, SchemaType.INT64, SchemaType.FLOAT64)
    ),
    SchemaType.INT16: frozenset((SchemaType.INT32, SchemaType.INT64, SchemaType.FLOAT64)),
    SchemaType.INT32: frozenset((SchemaType.INT64, SchemaType.FLOAT64)),
    SchemaType.FLOAT32: frozenset((SchemaType.FLOAT64,)),
}


def resolved(own: Schema, wanted: Schema) -> Resolve:
    """What makes of a column of *own* one of *wanted*; columns that are alike are not copied.

    Called once per object. Raises :class:`~headrace.connect.errors.RecordError`, without a place, when not
    every value of *own* is one of *wanted*.
    """
    return _resolved(own, wanted, None)


def _resolved(own: Schema, wanted: Schema, what: str | None) -> Resolve:
    """*what* it is within the record in words, ``None`` for the record itself."""
    if own.optional and not wanted.optional:
        raise RecordError(f"{what or _RECORD} may be null, but not by the schema that is wanted.")
    alike = _meaning(own) == _meaning(wanted)
    if alike and own.type is wanted.type:
        if own.type in _NESTED:
            return _NESTED[own.type](own, wanted, what)
        _check_bounds(own, wanted, what)
        return _as_it_is
    if alike and _meaning(own) == _PLAIN and wanted.type in _WIDER.get(own.type, ()):
        kind = arrow_type(wanted)
        return lambda values: values.cast(kind)
    raise RecordError(
        f"{what or _RECORD} is {_told(own)}, and the schema that is wanted says {_told(wanted)}."
    )


def _check_bounds(own: Schema, wanted: Schema, what: str | None) -> None:
    """Refuse values that *wanted*, an enum or a fixed, might not have."""
    what = what or _RECORD
    symbols = {key for key in wanted.parameters if key.startswith(_SYMBOL)}
    if symbols:
        known = {key for key in own.parameters if key.startswith(_SYMBOL)}
        others = sorted(key.removeprefix(_SYMBOL) for key in known - symbols)
        if others or not known:
            told = f"may be {others[0]!r}" if others else "may be any string"
            raise RecordError(f"{what} {told}, which the enum that is wanted has not.")
    size = wanted.parameters.get(FIXED_SIZE)
    if size is not None and own.parameters.get(FIXED_SIZE) != size:
        raise RecordError(f"{what} has not always the {size} bytes that are wanted.")


def _struct(own: Schema, wanted: Schema, what: str | None) -> Resolve:
    places = {each.name: index for index, each in enumerate(own.fields)}
    if own.name == UNION:
        unknown = sorted(places.keys() - {each.name for each in wanted.fields})
        if unknown:
            raise RecordError(
                f"{what or _RECORD} may be {unknown[0]}, which the union that is wanted has not."
            )
    makers = [_maker(own, each, places.get(each.name), what) for each in wanted.fields]
    fields = [
        pa.field(each.name, arrow_type(each.schema), nullable=each.schema.optional)
        for each in wanted.fields
    ]

    def structs(values: pa.Array) -> pa.Array:
        mask = values.is_null() if values.null_count else None
        columns = [make(cast("pa.StructArray", values)) for make in makers]
        if not columns:
            return pa.array(
                [None if each is None else {} for each in values.to_pylist()], pa.struct([])
            )
        return pa.StructArray.from_arrays(columns, fields=fields, mask=mask)

    return structs


def _maker(
    own: Schema, wanted: Field, place: int | None, what: str | None
) -> Callable[[pa.StructArray], pa.Array]:
    """What makes the column of the field *wanted*, which *own* has in *place* or not at all."""
    told = f"{what}, field {wanted.name!r}" if what else f"The field {wanted.name!r}"
    schema = wanted.schema
    if place is not None:
        resolve = _resolved(own.fields[place].schema, schema, told)
        return lambda values: resolve(values.field(place))
    if schema.default is None and not schema.optional:
        raise RecordError(f"{told} is missing, and it has no default and may not be null.")
    constant = column_of(schema, [schema.default])
    return lambda values: constant.take(pa.array(np.zeros(len(values), np.int64)))


def _array(own: Schema, wanted: Schema, what: str | None) -> Resolve:
    assert own.value_schema is not None
    assert wanted.value_schema is not None
    resolve, kind = (
        _resolved(own.value_schema, wanted.value_schema, f"{what or _RECORD}, element"),
        arrow_type(wanted),
    )

    def lists(values: pa.Array) -> pa.Array:
        borders, items = opened(values)
        mask = values.is_null() if values.null_count else None
        return pa.ListArray.from_arrays(pa.array(borders), resolve(items), type=kind, mask=mask)

    return lists


def _map(own: Schema, wanted: Schema, what: str | None) -> Resolve:
    assert own.key_schema is not None
    assert own.value_schema is not None
    assert wanted.key_schema is not None
    assert wanted.value_schema is not None
    keys = _resolved(own.key_schema, wanted.key_schema, f"{what or _RECORD}, key")
    items = _resolved(own.value_schema, wanted.value_schema, f"{what or _RECORD}, value")
    kind = arrow_type(wanted)

    def maps(values: pa.Array) -> pa.Array:
        borders, entries = opened(values)
        mask = values.is_null() if values.null_count else None
        return pa.MapArray.from_arrays(
            pa.array(borders),
            keys(entries.field(0)),
            items(entries.field(1)),
            type=kind,
            mask=mask,
        )

    return maps


_NESTED: Final[Mapping[SchemaType, Callable[[Schema, Schema, str | None], Resolve]]] = {
    SchemaType.STRUCT: _struct,
    SchemaType.ARRAY: _array,
    SchemaType.MAP: _map,
}


def _as_it_is(values: pa.Array) -> pa.Array:
    return values


def _meaning(schema: Schema) -> tuple[str, str]:
    """What makes of a type another one: a logical type's name with a decimal's scale, or that it is a union."""
    name = schema.name or ""
    if name == UNION:
        return name, ""
    return (name, schema.parameters.get("scale", "")) if name.startswith(_LOGICAL) else _PLAIN


def _told(schema: Schema) -> str:
    name, scale = _meaning(schema)
    if name in ("", UNION):
        return "a union" if name else str(schema.type)
    return name.rpartition(".")[2] + (f"({scale})" if scale else "")
