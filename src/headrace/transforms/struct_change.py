"""Transformations that make another struct, or another map, of each key or value: what they have in common."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from headrace.connect.batch import SourceBatch
from headrace.connect.record import SourceRecord
from headrace.connect.schema import SchemaType
from headrace.transforms.operand import Operand
from headrace.transforms.plans import Plans
from headrace.transforms.presence import is_absent, is_all_null, where_present
from headrace.transforms.requiring import required_map, required_struct
from headrace.transforms.struct_plan import StructPlan


@dataclass(frozen=True, slots=True, kw_only=True)
class StructChange:
    """Changes an operand that is a struct by *plans*, one without schema by *of_map*.

    *purpose* is how Kafka Connect calls the change in its errors. Null stays as it is, unless *refuses_null*.
    """

    operand: Operand
    purpose: str
    plans: Plans[StructPlan]
    of_map: Callable[[Mapping[Any, Any]], Mapping[Any, Any]]
    refuses_null: bool = False

    def apply(self, record: SourceRecord) -> SourceRecord:
        """*record* with its operand changed."""
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
