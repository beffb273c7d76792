"""How structs of one schema become structs of another."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import pyarrow as pa

from headrace.connect.errors import RecordError
from headrace.connect.schema import Field, Schema, arrow_type


class Member(Protocol):
    """Makes the value of one field of the struct that is made. Pure."""

    def value(self, struct: Mapping[str, Any]) -> Any:  # noqa: ANN401 (whatever the field holds)
        """The field's value for *struct*; raises :class:`~headrace.connect.errors.RecordError`."""
        ...

    def column(self, structs: pa.StructArray) -> pa.Array | None:
        """The values for all of *structs*, null for a null one; ``None`` when there is no way for all at once."""
        ...


@dataclass(frozen=True, slots=True)
class StructPlan:
    """One *member* for each field of *schema*, which has the Arrow type *arrow*. Pure.

    A null of a field that is not optional is refused, though it has a default, as in Kafka Connect when it
    is put into a struct. With *leaves_nulls* nobody puts it there, and the default stands for it.
    """

    schema: Schema
    arrow: pa.DataType
    members: Sequence[Member]
    leaves_nulls: bool = False

    def value(self, struct: Mapping[str, Any]) -> Mapping[str, Any]:
        """What *struct* becomes."""
        named = zip(self.schema.fields, self.members, strict=True)
        return {field.name: self._fitting(field, member.value(struct)) for field, member in named}

    def column(self, structs: pa.StructArray) -> pa.StructArray | None:
        """What *structs* become, null for a null one; ``None`` when a member has no way, or a row is refused."""
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
    """*value* for *field* of a struct that is made: there a default stands for no null, as in Kafka Connect. Pure.

    Raises :class:`~headrace.connect.errors.RecordError` for a null where there has to be a value.
    """
    if value is None and not field.schema.optional:
        told = (
            f'null used for required field: "{field.name}", schema type: {field.schema.type.name}'
        )
        raise RecordError(f"Invalid value: {told}")
    return value


def is_short(field: Field, column: pa.Array, structs: pa.Array) -> bool:
    """Whether *column* has a null for *field* where *structs* are there and it has to have a value. Pure."""
    return column.null_count > structs.null_count and not field.schema.optional


def struct_column(
    arrow: pa.DataType, columns: Sequence[pa.Array], like: pa.Array
) -> pa.StructArray:
    """*columns* as structs of the type *arrow*, as many as in *like* and null where that is. Pure."""
    # Made of buffers: the usual way knows no number of rows where there are no columns.
    return pa.StructArray.from_buffers(
        arrow, len(like), [_validity(like)], null_count=like.null_count, children=list(columns)
    )


def _validity(structs: pa.Array) -> pa.Buffer | None:
    """Which of *structs* are there, one bit for each."""
    if not structs.null_count:
        return None
    valid = structs.is_valid().to_numpy(zero_copy_only=False)
    return pa.py_buffer(np.packbits(valid, bitorder="little"))


def struct_plan(schema: Schema, members: Sequence[Member]) -> StructPlan:
    """The plan that makes structs of *schema* with *members*."""
    return StructPlan(schema, arrow_type(schema), members)
