"""Cast: fields, or all of a key or value, become numbers, booleans or text."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from headrace.connect.batch import SourceBatch
from headrace.connect.config import Config, Problem, setting
from headrace.connect.record import SourceRecord
from headrace.connect.schema import DATE, TIME, TIMESTAMP, Field, Schema, SchemaType
from headrace.transforms.casting import cast_column, cast_value, check_source, parsed_spec
from headrace.transforms.fields import (
    NULLS_DOC,
    FieldReader,
    default_of,
    field_readers,
    plain_value,
)
from headrace.transforms.record_part import RecordPart, is_absent, is_all_null, where_present
from headrace.transforms.struct_plan import (
    Plans,
    StructChange,
    StructPlan,
    struct_like,
    struct_plan,
)

_TIMES = {(each.type, each.name) for each in (DATE, TIME, TIMESTAMP)}


@dataclass(frozen=True, slots=True, kw_only=True)
class WholeCast:
    """Casts an *operand* to *target*; null stays as it is, with its schema."""

    operand: RecordPart
    target: SchemaType

    def apply(self, record: SourceRecord) -> SourceRecord:
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
        """Kafka Connect keeps all but the type, and casts the default.

        It keeps the name of a date or time, too, and its converters then refuse the number. Here the number has no
        such name: under it, it would be read as a date or time again.
        """
        check_source(before, value)
        default = default_of(before)
        if (self.target, before.name) in _TIMES:
            before = dataclasses.replace(before, name=None, version=None)
        return dataclasses.replace(
            before,
            type=self.target,
            default=(
                None if default is None else cast_value(before, plain_value(default), self.target)
            ),
        )


class CastConfig(Config):
    spec: tuple[str, ...] = setting(
        importance="high",
        doc=(
            "Fields and what they become, as pairs of field:type; or one type for all of the key or value. "
            "Types are int8, int16, int32, int64, float32, float64, boolean and string. Bytes can become "
            "string only, their base64."
        ),
    )
    replace_null_with_default: bool = setting(default=True, importance="medium", doc=NULLS_DOC)

    def check(self) -> Iterator[Problem]:
        """Report unknown types, and a type for the whole operand besides types of fields."""
        try:
            parsed_spec(self.spec)
        except ValueError as error:
            yield "spec", str(error)


class Cast:
    """Changes the types of fields, or of the whole operand; null stays null."""

    config_class = CastConfig

    def __init__(self, operand: RecordPart) -> None:
        self._operand = operand

    def configure(self, config: Mapping[str, str]) -> None:
        settings = CastConfig.parse(config)
        self._defaults = settings.replace_null_with_default
        spec = parsed_spec(settings.spec)
        self._targets = spec.fields
        self._change = (
            WholeCast(operand=self._operand, target=spec.whole)
            if spec.whole
            else StructChange(
                operand=self._operand,
                purpose="cast types",
                plans=Plans(self._plan),
                of_map=self._of_map,
            )
        )

    def apply(self, record: SourceRecord) -> SourceRecord:
        return self._change.apply(record)

    def apply_batch(self, batch: SourceBatch) -> Sequence[SourceBatch] | None:
        """All rows at once where they have a schema and every text among them is a plain number."""
        return self._change.apply_batch(batch)

    def _of_map(self, entries: Mapping[Any, Any]) -> Mapping[Any, Any]:
        # As in Kafka Connect, a missing entry is added as null.
        cast = {
            name: cast_value(None, entries.get(name), target)
            for name, target in self._targets.items()
        }
        return {**entries, **cast}

    def _plan(self, schema: Schema) -> StructPlan:
        members = [
            _Member(reader, self._targets.get(reader.name))
            for reader in field_readers(schema, defaults=self._defaults)
        ]
        fields = [Field(each.reader.name, each.schema()) for each in members]
        changed = struct_like(schema, fields)
        changed = dataclasses.replace(changed, optional=schema.optional)
        return struct_plan(changed, members)


@dataclass(frozen=True, slots=True)
class _Member:
    """A field, and the type to which it is cast, if it is."""

    reader: FieldReader
    target: SchemaType | None

    def schema(self) -> Schema:
        before = self.reader.schema
        return before if self.target is None else _cast_schema(before, self.target)

    def value(self, struct: Mapping[str, Any]) -> Any:  # noqa: ANN401 (whatever the field holds)
        value = self.reader.value(struct)
        if self.target is None:
            return value
        return cast_value(self.reader.schema, value, self.target)

    def column(self, structs: pa.StructArray) -> pa.Array | None:
        column = self.reader.column(structs)
        if self.target is None:
            return column
        return cast_column(column, self.target)


def _cast_schema(before: Schema, target: SchemaType) -> Schema:
    """The schema of a cast field, which keeps only its optionality and its default."""
    default = default_of(before)
    return Schema(
        type=target,
        optional=before.optional,
        default=None if default is None else cast_value(before, plain_value(default), target),
    )
