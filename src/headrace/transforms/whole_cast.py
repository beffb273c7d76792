"""All of a key or value as another type."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass

from headrace.connect.batch import SourceBatch
from headrace.connect.record import SourceRecord
from headrace.connect.schema import Schema, SchemaType
from headrace.transforms.cast_columns import cast_column
from headrace.transforms.casting import cast_value, check_source
from headrace.transforms.fields import default_of, plain_value
from headrace.transforms.operand import Operand
from headrace.transforms.presence import is_absent, is_all_null, where_present


@dataclass(frozen=True, slots=True, kw_only=True)
class WholeCast:
    """Makes *target* of an *operand*; null stays as it is, with the schema that it had."""

    operand: Operand
    target: SchemaType

    def apply(self, record: SourceRecord) -> SourceRecord:
        """*record* with its operand cast."""
        value, schema = self.operand.value(record), self.operand.schema(record)
        if is_absent(value):
            return record
        changed = None if schema is None else self._schema(schema, value)
        return self.operand.replaced(record, changed, cast_value(schema, value, self.target))

    def apply_batch(self, batch: SourceBatch) -> Sequence[SourceBatch] | None:
        """All rows at once where they have a schema of plain values."""
        column, schema = self.operand.column(batch), self.operand.column_schema(batch)
        if is_all_null(column):
            return [batch]
        if column is None or schema is None:
            return None
        after, cast = self._schema(schema, None), cast_column(column, self.target)
        if cast is None:
            return None
        return where_present(batch, column, self.operand.replaced_column(batch, after, cast))

    def _schema(self, before: Schema, value: object) -> Schema:
        """Kafka Connect keeps all but the type, and casts the default."""
        check_source(before, value)
        default = default_of(before)
        return dataclasses.replace(
            before,
            type=self.target,
            default=(
                None if default is None else cast_value(before, plain_value(default), self.target)
            ),
        )
