"""ValueToKey: makes the key from fields of the value."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence

from headrace.connect.batch import SourceBatch
from headrace.connect.config import Config, Problem, setting
from headrace.connect.errors import RecordError
from headrace.connect.record import SourceRecord
from headrace.connect.schema import Field, Schema, SchemaType
from headrace.transforms.fields import NULLS_DOC, field_readers
from headrace.transforms.record_part import list_problems, required_map, required_struct
from headrace.transforms.struct_plan import Plans, StructPlan, struct_plan

_PURPOSE = "copying fields from value to key"


class ValueToKeyConfig(Config):
    fields: tuple[str, ...] = setting(
        importance="high", doc="The fields of the value that form the key."
    )
    replace_null_with_default: bool = setting(default=True, importance="medium", doc=NULLS_DOC)

    def check(self) -> Iterator[Problem]:
        """Require fields, each once."""
        yield from list_problems("fields", self.fields, may_be_empty=False)


class ValueToKey:
    """Replaces keys by structs, or maps, of fields of the values."""

    config_class = ValueToKeyConfig

    def configure(self, config: Mapping[str, str]) -> None:
        settings = ValueToKeyConfig.parse(config)
        self._fields = settings.fields
        self._defaults = settings.replace_null_with_default
        self._plans = Plans(self._plan)

    def apply(self, record: SourceRecord) -> SourceRecord:
        schema = record.value_schema
        if schema is None:
            entries = required_map(record.value, _PURPOSE)
            key = {name: entries.get(name) for name in self._fields}
            return dataclasses.replace(record, key_schema=None, key=key)
        struct = required_struct(schema, record.value, _PURPOSE)
        plan = self._plans.of(schema)
        return dataclasses.replace(record, key_schema=plan.schema, key=plan.value(struct))

    def apply_batch(self, batch: SourceBatch) -> Sequence[SourceBatch] | None:
        """All rows at once where the values have a schema, none is null, and no key is refused."""
        schema = batch.value_schema
        if schema is None or schema.type is not SchemaType.STRUCT or batch.values.null_count:
            return None
        plan = self._plans.of(schema)
        keys = plan.column(batch.values)
        if keys is None:
            return None
        return [dataclasses.replace(batch, key_schema=plan.schema, keys=keys)]

    def _plan(self, schema: Schema) -> StructPlan:
        known = {each.name: each for each in field_readers(schema, defaults=self._defaults)}
        missing = [name for name in self._fields if name not in known]
        if missing:
            raise RecordError(f"Field does not exist: {missing[0]}")
        readers = [known[name] for name in self._fields]
        fields = tuple(Field(each.name, each.schema) for each in readers)
        key = Schema(type=SchemaType.STRUCT, fields=fields)
        return struct_plan(key, readers)
