"""SetSchemaMetadata: gives the schema of a key or value another name, another version, or both."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence

from headrace.connect.batch import SourceBatch
from headrace.connect.config import Config, Problem, setting
from headrace.connect.errors import RecordError
from headrace.connect.record import SourceRecord
from headrace.connect.schema import Schema, SchemaType
from headrace.transforms.fields import NULLS_DOC, field_readers
from headrace.transforms.record_part import RecordPart, is_absent, required_struct
from headrace.transforms.struct_plan import Plans, StructPlan, struct_plan

_PURPOSE = "updating schema metadata"


class SetSchemaMetadataConfig(Config):
    schema_name: str | None = setting(default=None, importance="high", doc="The schema's new name.")
    schema_version: int | None = setting(
        default=None, importance="high", doc="The schema's new version."
    )
    replace_null_with_default: bool = setting(default=True, importance="medium", doc=NULLS_DOC)

    def check(self) -> Iterator[Problem]:
        """Require at least one of the two."""
        if self.schema_name is None and self.schema_version is None:
            yield "schema.name", "Neither schema name nor version configured"


class SetSchemaMetadata:
    """Renames schemas of structs, those of null structs included."""

    config_class = SetSchemaMetadataConfig

    def __init__(self, operand: RecordPart) -> None:
        self._operand = operand

    def configure(self, config: Mapping[str, str]) -> None:
        settings = SetSchemaMetadataConfig.parse(config)
        self._name, self._version = settings.schema_name, settings.schema_version
        self._defaults = settings.replace_null_with_default
        self._plans = Plans(self._plan)

    def apply(self, record: SourceRecord) -> SourceRecord:
        value, schema = self._operand.value(record), self._operand.schema(record)
        if schema is None:
            return _unchanged(record, value)
        is_null_struct = value is None and schema.type is SchemaType.STRUCT
        struct = None if is_null_struct else required_struct(schema, value, _PURPOSE)
        plan = self._plans.of(schema)
        return self._operand.replaced(
            record, plan.schema, None if struct is None else plan.value(struct)
        )

    def apply_batch(self, batch: SourceBatch) -> Sequence[SourceBatch] | None:
        """All rows at once where they are structs, and none is refused."""
        column, schema = self._operand.column(batch), self._operand.column_schema(batch)
        if column is None or schema is None or schema.type is not SchemaType.STRUCT:
            return None
        plan = self._plans.of(schema)
        made = plan.column(column)
        return None if made is None else [self._operand.replaced_column(batch, plan.schema, made)]

    def _plan(self, schema: Schema) -> StructPlan:
        renamed = dataclasses.replace(
            schema,
            name=schema.name if self._name is None else self._name,
            version=schema.version if self._version is None else self._version,
        )
        return struct_plan(renamed, list(field_readers(schema, defaults=self._defaults)))


def _unchanged(record: SourceRecord, value: object) -> SourceRecord:
    if is_absent(value):
        return record
    raise RecordError(f"Schema required for [{_PURPOSE}]")
