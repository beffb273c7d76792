"""InsertField: inserts metadata of a record, or a constant text, as fields."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import repeat
from typing import Any, Final

import pyarrow as pa

from headrace.connect.batch import SourceBatch
from headrace.connect.config import Config, Problem, setting
from headrace.connect.record import SourceRecord
from headrace.connect.schema import INT32, STRING, TIMESTAMP, Field, Schema, SchemaType, arrow_type
from headrace.transforms.fields import NULLS_DOC, FieldReader, field_readers
from headrace.transforms.record_part import (
    RecordPart,
    is_absent,
    is_all_null,
    required_map,
    required_struct,
    where_present,
)
from headrace.transforms.struct_plan import Plans, fitting, is_short, struct_column, struct_like

_PURPOSE: Final = "field insertion"
_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_SUFFIXES = "Suffixed with ! the field is required, with ? or nothing it is optional."


def _refused_offset(_: str) -> str:
    return "Only SinkRecord supported for [field insertion]: a source's records have no offset in Kafka yet"


class InsertFieldConfig(Config):
    topic_field: str | None = setting(
        default=None, doc=f"The field that gets the name of the topic. {_SUFFIXES}"
    )
    partition_field: str | None = setting(
        default=None, doc=f"The field that gets the number of the partition. {_SUFFIXES}"
    )
    offset_field: str | None = setting(
        default=None,
        valid=_refused_offset,
        doc="The field that gets the record's offset in Kafka: for sinks only, so it must not be set.",
    )
    timestamp_field: str | None = setting(
        default=None, doc=f"The field that gets the record's timestamp. {_SUFFIXES}"
    )
    static_field: str | None = setting(
        default=None, doc=f"The field that gets static.value. {_SUFFIXES}"
    )
    static_value: str | None = setting(
        default=None, doc="The text that static.field gets in every record."
    )
    replace_null_with_default: bool = setting(default=True, importance="medium", doc=NULLS_DOC)

    def check(self) -> Iterator[Problem]:
        """Require something to insert, and a value for a static field."""
        names = (self.topic_field, self.partition_field, self.timestamp_field, self.static_field)
        if all(name is None for name in names):
            yield "topic.field", "No field insertion configured"
        if self.static_field is not None and self.static_value is None:
            message = f"No value specified for static field: {self.static_field}"
            yield "static.value", f"Invalid value null for configuration static.value: {message}"


@dataclass(frozen=True, slots=True)
class _Insertion:
    """One field to insert: its schema, and how its value is read from a record and from a batch."""

    field: Field
    of_record: Callable[[SourceRecord], Any]
    of_batch: Callable[[SourceBatch], pa.Array]


@dataclass(frozen=True, slots=True)
class _Plan:
    """The schema with the inserted fields, and the readers of the others."""

    schema: Schema
    readers: Sequence[FieldReader]


class InsertField:
    """Inserts fields after the existing ones; an operand that is null stays null."""

    config_class = InsertFieldConfig

    def __init__(self, operand: RecordPart) -> None:
        self._operand = operand

    def configure(self, config: Mapping[str, str]) -> None:
        parsed = InsertFieldConfig.parse(config)
        self._defaults = parsed.replace_null_with_default
        self._insertions = tuple(_insertions(parsed))
        self._plans = Plans(self._plan)

    def apply(self, record: SourceRecord) -> SourceRecord:
        """*record* with the fields; without schema they replace entries of their names, and nulls are left out."""
        value, schema = self._operand.value(record), self._operand.schema(record)
        if is_absent(value):
            return record
        if schema is None:
            entries = dict(required_map(value, _PURPOSE)) | self._entries(record)
            return self._operand.replaced(record, None, entries)
        struct = required_struct(schema, value, _PURPOSE)
        plan = self._plans.of(schema)
        fields = {each.name: fitting(each.field, each.value(struct)) for each in plan.readers}
        fields |= {each.field.name: each.of_record(record) for each in self._insertions}
        return self._operand.replaced(record, plan.schema, fields)

    def apply_batch(self, batch: SourceBatch) -> Sequence[SourceBatch] | None:
        """All rows at once where they are structs; those that are null keep their schema, in batches of their own."""
        column, schema = self._operand.column(batch), self._operand.column_schema(batch)
        if is_all_null(column):
            return [batch]
        if column is None or schema is None or schema.type is not SchemaType.STRUCT:
            return None
        plan = self._plans.of(schema)
        columns = [each.column(column) for each in plan.readers]
        if any(map(is_short, schema.fields, columns, repeat(column))):
            return None
        columns += [each.of_batch(batch) for each in self._insertions]
        inserted = struct_column(arrow_type(plan.schema), columns, column)
        changed = self._operand.replaced_column(batch, plan.schema, inserted)
        return where_present(batch, column, changed)

    def _plan(self, schema: Schema) -> _Plan:
        inserted = [*schema.fields, *(each.field for each in self._insertions)]
        readers = tuple(field_readers(schema, defaults=self._defaults))
        return _Plan(struct_like(schema, inserted), readers)

    def _entries(self, record: SourceRecord) -> dict[str, Any]:
        """The entries to insert without schema; a timestamp is a number of milliseconds."""
        entries = dict[str, Any]()
        for each in self._insertions:
            is_time = each.field.schema.name == TIMESTAMP.name
            value = record.timestamp if is_time else each.of_record(record)
            if value is not None:
                entries[each.field.name] = value
        return entries


def _insertions(config: InsertFieldConfig) -> Iterator[_Insertion]:
    """The fields that *config* inserts, in Kafka Connect's order."""
    static = config.static_value
    rows: tuple[
        tuple[str | None, Schema, Callable[[SourceRecord], Any], Callable[[SourceBatch], pa.Array]],
        ...,
    ] = (
        (config.topic_field, STRING, lambda record: record.topic, _topics),
        (config.partition_field, INT32, lambda record: record.partition, _partitions),
        (config.timestamp_field, TIMESTAMP, lambda record: _time(record.timestamp), _times),
        (
            config.static_field,
            STRING,
            lambda _: static,
            lambda batch: pa.repeat(pa.scalar(static, pa.utf8()), len(batch)),
        ),
    )
    for name, schema, of_record, of_batch in rows:
        if name is not None:
            yield _Insertion(_field(name, schema), of_record, of_batch)


def _field(name: str, schema: Schema) -> Field:
    if name.endswith("!"):
        return Field(name[:-1], schema)
    return Field(name.removesuffix("?"), schema.as_optional())


def _time(millis: int | None) -> dt.datetime | None:
    return None if millis is None else _EPOCH + dt.timedelta(milliseconds=millis)


def _topics(batch: SourceBatch) -> pa.Array:
    return pa.repeat(pa.scalar(batch.topic, pa.utf8()), len(batch))


def _partitions(batch: SourceBatch) -> pa.Array:
    return pa.repeat(pa.scalar(batch.partition, pa.int32()), len(batch))


def _times(batch: SourceBatch) -> pa.Array:
    stamps, kind = batch.timestamps, arrow_type(TIMESTAMP)
    if isinstance(stamps, int | None):
        stamps = pa.repeat(pa.scalar(stamps, pa.int64()), len(batch))
    return stamps.cast(kind)
