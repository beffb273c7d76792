"""Columns of Avro values: how fastavro is to read them, and how what it reads becomes Arrow.

fastavro is given a *layout*: a schema whose bytes are the same as the writer's, but whose values are
cheaper to make and tell more. Logical types are the numbers they are, enums are indexes, strings are
bytes, fields have short names, and each branch of a union is a record of its own, which tells what branch it was.
"""

from __future__ import annotations

import itertools
import operator
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import pyarrow as pa

from headrace.connect.schema import Schema, arrow_type
from headrace.formats.avro.leaves import (
    UNFIT,
    DecimalColumn,
    EnumColumn,
    PlainColumn,
    Values,
    around_nulls,
)
from headrace.formats.avro.types import (
    AvroType,
    entry_fields,
    is_map_entry,
    nullable_of,
    refused,
)

_READ_AS = {
    "boolean": pa.bool_(),
    "int": pa.int32(),
    "long": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "bytes": pa.binary(),
    "string": pa.binary(),
    "fixed": pa.binary(),
}


class Column(Protocol):
    """One type's way into Arrow."""

    @property
    def layout(self) -> Any:  # noqa: ANN401
        """The schema to read with."""
        ...

    def build(self, values: Values) -> pa.Array:
        """The column of *values*, ``None`` for null; raises one of ``leaves.UNFIT`` when one does not fit."""
        ...


def column_of(kind: AvroType, schema: Schema) -> Column:
    """The column of values of *kind*, whose *schema* is what Connect has for it. Called once per object."""
    return _Maker(itertools.count()).make(kind, schema)


@dataclass(frozen=True, slots=True, kw_only=True)
class StructColumn:
    """Records; *members* by the short names that they are read under."""

    layout: Any
    arrow: pa.StructType
    members: Sequence[tuple[str, Column]]
    sparse: bool = False
    """Whether a value has only some of the members, as that of a union has."""

    def build(self, values: Values) -> pa.Array:
        """See :class:`Column`."""
        return around_nulls(values, self._build)

    def _build(self, values: Values) -> pa.Array:
        if not self.members:
            return pa.array([{}] * len(values), self.arrow)
        children = [
            _member(self.arrow[index].name, column, self._of_member(key, values))
            for index, (key, column) in enumerate(self.members)
        ]
        return self.of_children(children)

    def of_children(self, children: Sequence[pa.Array]) -> pa.Array:
        """The column whose members are *children*."""
        return pa.StructArray.from_arrays(children, fields=list(self.arrow))

    def _of_member(self, key: str, values: Values) -> Values:
        if self.sparse:
            return [each.get(key) for each in values]
        return list(map(operator.itemgetter(key), values))


class NullableColumn:
    """Values of *inner* or nulls; *kinds* are the union's branches, of which null may be missing."""

    def __init__(self, inner: Column, kinds: Sequence[str]) -> None:
        self.inner = inner
        self.layout = ["null" if each == "null" else inner.layout for each in kinds]
        self.null = kinds.index("null") if "null" in kinds else None
        """Which branch null is."""
        self.build = inner.build


@dataclass(frozen=True, slots=True, kw_only=True)
class ListColumn:
    """Arrays."""

    layout: Any
    arrow: pa.ListType
    element: Column

    def build(self, values: Values) -> pa.Array:
        """See :class:`Column`."""
        return around_nulls(values, self._build)

    def _build(self, values: Values) -> pa.Array:
        elements = self.element.build(list(itertools.chain.from_iterable(values)))
        return pa.ListArray.from_arrays(_borders(values), elements, type=self.arrow)


@dataclass(frozen=True, slots=True, kw_only=True)
class MapColumn:
    """Maps; *pairs* makes keys and values of one map as it was read."""

    layout: Any
    arrow: pa.MapType
    keys: Column
    values: Column
    pairs: Callable[[Any], tuple[Values, Values]]

    def build(self, values: Values) -> pa.Array:
        """See :class:`Column`."""
        return around_nulls(values, self._build)

    def _build(self, values: Values) -> pa.Array:
        pairs = [self.pairs(each) for each in values]
        keys = self.keys.build([key for each, _ in pairs for key in each])
        found = self.values.build([value for _, each in pairs for value in each])
        borders = _borders([each for each, _ in pairs])
        return pa.MapArray.from_arrays(borders, keys, found, type=self.arrow)


class _Maker:
    """Makes the columns of one schema; *numbers* give each part a name of its own."""

    def __init__(self, numbers: Iterator[int]) -> None:
        self._numbers = numbers

    def make(self, kind: AvroType, schema: Schema) -> Column:
        makers = {
            "record": self._record,
            "union": self._union,
            "array": self._array,
            "map": self._map,
            "enum": self._enum,
        }
        return makers.get(kind.kind, self._plain)(kind, schema)

    def _enum(self, kind: AvroType, schema: Schema) -> Column:
        return EnumColumn(symbols=pa.array(kind.symbols, pa.utf8()))

    def _array(self, kind: AvroType, schema: Schema) -> Column:
        if is_map_entry(kind.element):
            return self._entries(kind, schema)
        element = self.make(kind.element, _inner(schema.value_schema))
        layout = {"type": "array", "items": element.layout}
        return ListColumn(layout=layout, arrow=_arrow(schema), element=element)

    def _plain(self, kind: AvroType, schema: Schema) -> Column:
        arrow = _arrow(schema)
        layout: Any = "bytes" if kind.kind == "string" else kind.kind
        if kind.kind == "fixed":
            layout = {"type": "fixed", "name": self._name("x"), "size": kind.size}
        if pa.types.is_decimal(arrow):
            return DecimalColumn(layout=layout, arrow=arrow)
        read = _READ_AS[kind.kind]
        small = pa.types.is_int8(arrow) or pa.types.is_int16(arrow)
        return PlainColumn(layout=layout, read=arrow if small else read, arrow=arrow)

    def _record(self, kind: AvroType, schema: Schema) -> Column:
        pairs = zip(kind.fields, schema.fields, strict=True)
        members = [(self._name("f"), self.make(ours.type, theirs.schema)) for ours, theirs in pairs]
        return StructColumn(layout=self._layout(members), arrow=_arrow(schema), members=members)

    def _union(self, kind: AvroType, schema: Schema) -> Column:
        inner = nullable_of(kind)
        if inner is not None:
            return NullableColumn(self.make(inner, schema), [each.kind for each in kind.branches])
        others = [each for each in kind.branches if each.kind != "null"]
        pairs = zip(others, schema.fields, strict=True)
        members = [(self._name("b"), self.make(each, field.schema)) for each, field in pairs]
        layouts = iter([self._layout([member]) for member in members])
        return StructColumn(
            layout=["null" if each.kind == "null" else next(layouts) for each in kind.branches],
            arrow=_arrow(schema),
            members=members,
            sparse=True,
        )

    def _map(self, kind: AvroType, schema: Schema) -> Column:
        values = self.make(kind.element, _inner(schema.value_schema))
        return MapColumn(
            layout={"type": "map", "values": values.layout},
            arrow=_arrow(schema),
            keys=PlainColumn(layout="string", read=pa.utf8(), arrow=pa.utf8()),
            values=values,
            pairs=lambda read: (list(read), list(read.values())),
        )

    def _entries(self, kind: AvroType, schema: Schema) -> Column:
        key, value = entry_fields(kind.element)
        columns = {
            "key": (self._name("f"), self.make(key, _inner(schema.key_schema))),
            "value": (self._name("f"), self.make(value, _inner(schema.value_schema))),
        }
        (keys, key_column), (values, value_column) = columns["key"], columns["value"]
        in_order = [columns[each.name] for each in kind.element.fields]
        return MapColumn(
            layout={"type": "array", "items": self._layout(in_order)},
            arrow=_arrow(schema),
            keys=key_column,
            values=value_column,
            pairs=lambda read: ([each[keys] for each in read], [each[values] for each in read]),
        )

    def _layout(self, members: Sequence[tuple[str, Column]]) -> object:
        fields = [{"name": key, "type": column.layout} for key, column in members]
        return {"type": "record", "name": self._name("r"), "fields": fields}

    def _name(self, letter: str) -> str:
        return f"{letter}{next(self._numbers)}"


def _arrow(schema: Schema) -> pa.DataType:
    try:
        return arrow_type(schema)
    except (ValueError, ArithmeticError, pa.ArrowException) as error:
        raise refused(str(error)) from error


def _inner(schema: Schema | None) -> Schema:
    if schema is None:
        raise RuntimeError("the schema of a container has no element")
    return schema


def _member(name: str, column: Column, values: Values) -> pa.Array:
    """A field's column; an error says which field it is."""
    try:
        return column.build(values)
    except UNFIT as error:
        raise ValueError(f"{name}: {error}") from error


def _borders(values: Values) -> pa.Int32Array:
    borders = np.zeros(len(values) + 1, np.int64)
    np.cumsum(np.fromiter(map(len, values), np.int64, len(values)), out=borders[1:])
    return pa.array(borders, pa.int32())
