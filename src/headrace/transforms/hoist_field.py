"""HoistField: a key or value becomes the only field of a struct, or the only entry of a map."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pyarrow as pa

from headrace.connect.batch import SourceBatch
from headrace.connect.config import Config, setting
from headrace.connect.record import SourceRecord
from headrace.connect.schema import Field, Schema, SchemaType, arrow_type
from headrace.transforms.record_part import RecordPart, is_absent
from headrace.transforms.struct_plan import fitting


class HoistFieldConfig(Config):
    field: str = setting(
        importance="medium",
        doc="The name of the field, or of the entry, that the key or value becomes.",
    )


class HoistField:
    """Wraps an operand, nulls included where its schema allows them."""

    config_class = HoistFieldConfig

    def __init__(self, operand: RecordPart) -> None:
        self._operand = operand

    def configure(self, config: Mapping[str, str]) -> None:
        self._field = HoistFieldConfig.parse(config).field

    def apply(self, record: SourceRecord) -> SourceRecord:
        """*record* with its operand in a struct; in a map where it has no schema."""
        schema = self._operand.schema(record)
        value = self._operand.value(record)
        value = None if is_absent(value) else value
        if schema is None:
            return self._operand.replaced(record, None, {self._field: value})
        around = self._around(schema)
        (field,) = around.fields
        return self._operand.replaced(record, around, {self._field: fitting(field, value)})

    def apply_batch(self, batch: SourceBatch) -> Sequence[SourceBatch] | None:
        """All rows at once where they have a schema."""
        column, schema = self._operand.column(batch), self._operand.column_schema(batch)
        if column is None or schema is None or (column.null_count and not schema.optional):
            return None
        around = self._around(schema)
        hoisted = pa.StructArray.from_arrays([column], fields=list(arrow_type(around)))
        return [self._operand.replaced_column(batch, around, hoisted)]

    def _around(self, schema: Schema) -> Schema:
        return Schema(type=SchemaType.STRUCT, fields=(Field(self._field, schema),))
