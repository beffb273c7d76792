"""How structs of one schema become structs of another."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import pyarrow as pa

from headrace.connect.schema import Schema, arrow_type


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
    """One *member* for each field of *schema*, which has the Arrow type *arrow*. Pure."""

    schema: Schema
    arrow: pa.DataType
    members: Sequence[Member]

    def value(self, struct: Mapping[str, Any]) -> Mapping[str, Any]:
        """What *struct* becomes."""
        named = zip(self.schema.fields, self.members, strict=True)
        return {field.name: member.value(struct) for field, member in named}

    def column(self, structs: pa.StructArray) -> pa.StructArray | None:
        """What *structs* become, null for a null one; ``None`` when a member has no way."""
        columns = list[pa.Array]()
        for member in self.members:
            column = member.column(structs)
            if column is None:
                return None
            columns.append(column)
        return struct_column(self.arrow, columns, structs)


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
