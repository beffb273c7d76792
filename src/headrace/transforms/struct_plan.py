"""Plans that turn structs of one schema into structs of another, made once for each schema of a transformation."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

import numpy as np
import pyarrow as pa

from headrace.connect.batch import SourceBatch
from headrace.connect.errors import RecordError
from headrace.connect.record import SourceRecord
from headrace.connect.schema import Field, Schema, SchemaType, arrow_type
from headrace.transforms.record_part import (
    RecordPart,
    is_absent,
    is_all_null,
    required_map,
    required_struct,
    where_present,
)


class Member(Protocol):
    """Makes the value of one field of the new struct. Pure."""

    def value(self, struct: Mapping[str, Any]) -> Any:  # noqa: ANN401 (whatever the field holds)
        """The field's value for *struct*; raises :class:`~headrace.connect.errors.RecordError`."""
        ...

    def column(self, structs: pa.StructArray) -> pa.Array | None:
        """The values for all of *structs*, null for a null one; ``None`` when they have to be made row by row."""
        ...


@dataclass(frozen=True, slots=True)
class StructPlan:
    """One *member* for each field of *schema*, which has the Arrow type *arrow*. Pure.

    A null for a field that is not optional is refused, even if it has a default, as in Kafka Connect when it
    is put into a struct. With *leaves_nulls* it is not put there, and the default is used.
    """

    schema: Schema
    arrow: pa.DataType
    members: Sequence[Member]
    leaves_nulls: bool = False

    def value(self, struct: Mapping[str, Any]) -> Mapping[str, Any]:
        """The new struct for *struct*."""
        named = zip(self.schema.fields, self.members, strict=True)
        return {field.name: self._fitting(field, member.value(struct)) for field, member in named}

    def column(self, structs: pa.StructArray) -> pa.StructArray | None:
        """The new structs for *structs*, null for a null one; ``None`` when a row is refused, or rows are needed one by one."""
        columns = list[pa.Array]()
        for field, member in zip(self.schema.fields, self.members, strict=True):
            column = member.column(structs)
            if column is None or (is_short(field, column, structs) and not self._leaves(field)):
                return None
            columns.append(column)
        return struct_column(self.arrow, columns, structs)

    def _fitting(self, field: Field, value: Any) -> Any:  # noqa: ANN401 (whatever the field holds)
        return value if self._leaves(field) else fitting(field, value)

    def _leaves(self, field: Field) -> bool:
        return self.leaves_nulls and field.schema.default is not None


def fitting(field: Field, value: Any) -> Any:  # noqa: ANN401 (whatever the field holds)
    """*value* for *field* of a new struct, where a default does not replace a null, as in Kafka Connect. Pure.

    Raises :class:`~headrace.connect.errors.RecordError` for a null where a value is required.
    """
    if value is None and not field.schema.optional:
        message = (
            f'null used for required field: "{field.name}", schema type: {field.schema.type.name}'
        )
        raise RecordError(f"Invalid value: {message}")
    return value


def is_short(field: Field, column: pa.Array, structs: pa.Array) -> bool:
    """Whether *column* has a null for a required *field* in a row where *structs* is not null. Pure."""
    return column.null_count > structs.null_count and not field.schema.optional


def struct_column(
    arrow: pa.DataType, columns: Sequence[pa.Array], like: pa.Array
) -> pa.StructArray:
    """*columns* as structs of the type *arrow*, as many as in *like* and null where that is. Pure."""
    # Made from buffers: without columns, the usual constructor does not know the number of rows.
    return pa.StructArray.from_buffers(
        arrow, len(like), [_validity(like)], null_count=like.null_count, children=list(columns)
    )


def _validity(structs: pa.Array) -> pa.Buffer | None:
    """The validity bitmap of *structs*."""
    if not structs.null_count:
        return None
    valid = structs.is_valid().to_numpy(zero_copy_only=False)
    return pa.py_buffer(np.packbits(valid, bitorder="little"))


def struct_plan(schema: Schema, members: Sequence[Member]) -> StructPlan:
    """The plan that makes structs of *schema* with *members*."""
    return StructPlan(schema, arrow_type(schema), members)


def struct_like(schema: Schema, fields: Sequence[Field]) -> Schema:
    """A struct with *fields* and the attributes of *schema* that Kafka Connect copies: all but optional and default.

    Raises :class:`~headrace.connect.errors.RecordError` when two of *fields* have one name, or one has none.
    """
    _check_names(fields)
    return Schema(
        type=SchemaType.STRUCT,
        name=schema.name,
        version=schema.version,
        doc=schema.doc,
        parameters=schema.parameters,
        fields=tuple(fields),
    )


def _check_names(fields: Sequence[Field]) -> None:
    seen = set[str]()
    for field in fields:
        if not field.name:
            raise RecordError("fieldName cannot be null.")
        if field.name in seen:
            raise RecordError(f"Cannot create field because of field name duplication {field.name}")
        seen.add(field.name)


_Plan = TypeVar("_Plan")

# Records of one task seldom have more schemas than this at a time.
_KEPT = 16


class Plans(Generic[_Plan]):
    """The plans of the most recent schemas, each made when its schema appears.

    Schemas are compared by identity: a batch and its rows share one schema object, and comparing two schemas can cost
    more than a row does.
    """

    def __init__(self, make: Callable[[Schema], _Plan]) -> None:
        self._make = make
        self._kept = dict[int, tuple[Schema, _Plan]]()

    def of(self, schema: Schema) -> _Plan:
        """The plan of *schema*; raises what making it raises."""
        kept = self._kept.get(id(schema))
        return self._added(schema) if kept is None else kept[1]

    def _added(self, schema: Schema) -> _Plan:
        plan = self._make(schema)
        if len(self._kept) == _KEPT:
            del self._kept[next(iter(self._kept))]
        # The schema is kept as well, so that no other one can get its identity.
        self._kept[id(schema)] = (schema, plan)
        return plan


@dataclass(frozen=True, slots=True, kw_only=True)
class StructChange:
    """Changes an operand that is a struct by *plans*, one without schema by *of_map*.

    *purpose* is Kafka Connect's name of the change in its errors. Null stays as it is, unless *refuses_null*.
    """

    operand: RecordPart
    purpose: str
    plans: Plans[StructPlan]
    of_map: Callable[[Mapping[Any, Any]], Mapping[Any, Any]]
    refuses_null: bool = False

    def apply(self, record: SourceRecord) -> SourceRecord:
        value, schema = self.operand.value(record), self.operand.schema(record)
        if is_absent(value) and not self.refuses_null:
            return record
        if schema is None:
            changed = self.of_map(required_map(value, self.purpose))
            return self.operand.replaced(record, None, changed)
        struct = required_struct(schema, value, self.purpose)
        plan = self.plans.of(schema)
        return self.operand.replaced(record, plan.schema, plan.value(struct))

    def apply_batch(self, batch: SourceBatch) -> Sequence[SourceBatch] | None:
        """All rows at once where they are structs, or null."""
        column, schema = self.operand.column(batch), self.operand.column_schema(batch)
        if is_all_null(column):
            return None if self.refuses_null else [batch]
        if column is None or schema is None or schema.type is not SchemaType.STRUCT:
            return None
        if column.null_count and self.refuses_null:
            return None
        plan = self.plans.of(schema)
        made = plan.column(column)
        if made is None:
            return None
        changed = self.operand.replaced_column(batch, plan.schema, made)
        return where_present(batch, column, changed)
