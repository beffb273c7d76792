"""ExtractField: replaces a key or value by one of its fields."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from headrace.connect.batch import SourceBatch
from headrace.connect.config import Config, Problem, setting
from headrace.connect.errors import RecordError
from headrace.connect.record import SourceRecord
from headrace.connect.schema import Schema, SchemaType
from headrace.transforms.fields import (
    NULLS_DOC,
    FieldAccessor,
    FieldReader,
    field_readers,
    parsed_path,
)
from headrace.transforms.record_part import (
    RecordPart,
    is_absent,
    is_all_null,
    required_map,
    required_struct,
)
from headrace.transforms.struct_plan import Plans

_PURPOSE = "field extraction"


class ExtractFieldConfig(Config):
    field: str = setting(importance="medium", doc="The field to extract.")
    replace_null_with_default: bool = setting(default=True, importance="medium", doc=NULLS_DOC)
    field_syntax_version: str = setting(
        default="V1",
        importance="high",
        one_of=("V1", "V2"),
        ignore_case=True,
        doc=(
            "How the field is named: V1 by its name, V2 by the path of names to it with dots between "
            "them, such as outer.inner; backticks around a name that has dots."
        ),
    )

    def check(self) -> Iterator[Problem]:
        """Check that the field is named in its syntax."""
        try:
            names = parsed_path(self.field, self.field_syntax_version)
        except ValueError as error:
            yield "field", str(error)
        else:
            if not names:
                yield "field", "Invalid value  for configuration field: String must be non-empty"


class ExtractField:
    """Replaces an operand by a field of it; by null where the field, or a struct around it, is null."""

    config_class = ExtractFieldConfig

    def __init__(self, operand: RecordPart) -> None:
        self._operand = operand

    def configure(self, config: Mapping[str, str]) -> None:
        settings = ExtractFieldConfig.parse(config)
        self._names = parsed_path(settings.field, settings.field_syntax_version)
        self._field_text = settings.field
        self._defaults = settings.replace_null_with_default
        self._plans = Plans(self._plan)

    def apply(self, record: SourceRecord) -> SourceRecord:
        value, schema = self._operand.value(record), self._operand.schema(record)
        if schema is None:
            entry = None if is_absent(value) else self._of_map(required_map(value, _PURPOSE))
            return self._operand.replaced(record, None, entry)
        struct = None if value is None else required_struct(schema, value, _PURPOSE)
        plan = self._plans.of(schema)
        return self._operand.replaced(record, plan.schema, plan.way.value(struct))

    def apply_batch(self, batch: SourceBatch) -> Sequence[SourceBatch] | None:
        """All rows at once where they have a schema."""
        column, schema = self._operand.column(batch), self._operand.column_schema(batch)
        if schema is None:
            return [batch] if is_all_null(column) else None
        if column is None or schema.type is not SchemaType.STRUCT:
            return None
        plan = self._plans.of(schema)
        return [self._operand.replaced_column(batch, plan.schema, plan.way.column(column))]

    def _of_map(self, entries: Mapping[Any, Any]) -> object:
        value: object = entries
        for depth, name in enumerate(self._names):
            purpose = "nested field access" if depth else _PURPOSE
            value = required_map(value, purpose).get(name)
            if value is None:
                return None
        return value

    def _plan(self, schema: Schema) -> _Plan:
        readers = list[FieldReader]()
        for name in self._names:
            if schema.type is not SchemaType.STRUCT:
                raise RecordError(
                    f"Cannot look up fields on non-struct type: {self._field_text} has a part that is in no struct."
                )
            # Defaults of the structs around the field are not used, as in Kafka Connect.
            last = len(readers) + 1 == len(self._names)
            readers.append(self._reader(schema, name, defaults=last and self._defaults))
            schema = readers[-1].schema
        return _Plan(schema, FieldAccessor(readers))

    def _reader(self, schema: Schema, name: str, *, defaults: bool) -> FieldReader:
        for reader in field_readers(schema, defaults=defaults):
            if reader.name == name:
                return reader
        raise RecordError(f"Unknown field: {self._field_text}")


@dataclass(frozen=True, slots=True)
class _Plan:
    """The path to the field, and its schema."""

    schema: Schema
    way: FieldAccessor
