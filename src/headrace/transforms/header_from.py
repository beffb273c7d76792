"""HeaderFrom: fields of a key or value as headers."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from headrace.connect.batch import SourceBatch
from headrace.connect.config import Config, Problem, setting
from headrace.connect.errors import RecordError
from headrace.connect.header_columns import HeaderColumn
from headrace.connect.json_document import JSON_NULL
from headrace.connect.record import Header, SourceRecord
from headrace.connect.schema import Schema, SchemaType
from headrace.transforms.fields import NULLS_DOC, FieldReader, field_readers
from headrace.transforms.record_part import RecordPart, required_map, required_struct, with_headers
from headrace.transforms.struct_plan import Plans, StructPlan, is_short, struct_like, struct_plan


def _empty_problem(items: Sequence[str]) -> str | None:
    return None if items else "Empty list"


class HeaderFromConfig(Config):
    fields: tuple[str, ...] = setting(
        importance="high",
        valid=_empty_problem,
        doc="The names of the fields that become headers, separated by commas.",
    )
    headers: tuple[str, ...] = setting(
        importance="high",
        valid=_empty_problem,
        doc="The names of their headers, in the order of fields.",
    )
    operation: Literal["move", "copy"] = setting(
        importance="high",
        doc="With move the key or value loses the fields, with copy it keeps them.",
    )
    replace_null_with_default: bool = setting(default=True, importance="medium", doc=NULLS_DOC)

    def check(self) -> Iterator[Problem]:
        """Check that every field has its header."""
        if len(self.fields) != len(self.headers):
            message = "'fields' config must have the same number of elements as 'headers' config."
            yield "fields", message


@dataclass(frozen=True, slots=True)
class _Plan:
    """The readers of the fields that become headers, with the headers' names; and the plan of the remaining struct."""

    chosen: Sequence[tuple[FieldReader, str]]
    left: StructPlan


class HeaderFrom:
    """Copies or moves fields into headers, after the existing ones."""

    config_class = HeaderFromConfig

    def __init__(self, operand: RecordPart) -> None:
        self._operand = operand

    def configure(self, config: Mapping[str, str]) -> None:
        parsed = HeaderFromConfig.parse(config)
        self._pairs = tuple(zip(parsed.fields, parsed.headers, strict=True))
        self._fields = frozenset(parsed.fields)
        self._moves = parsed.operation == "move"
        self._purpose = f"header {parsed.operation}"
        self._defaults = parsed.replace_null_with_default
        self._plans = Plans(self._plan)

    def apply(self, record: SourceRecord) -> SourceRecord:
        """*record* with the headers; without schema a missing field becomes a header of null."""
        value, schema = self._operand.value(record), self._operand.schema(record)
        value = None if value is JSON_NULL else value
        if schema is None:
            return self._from_map(record, required_map(value, self._purpose))
        return self._from_struct(record, schema, required_struct(schema, value, self._purpose))

    def apply_batch(self, batch: SourceBatch) -> Sequence[SourceBatch] | None:
        """All rows at once where they are structs; their headers are columns then."""
        column, schema = self._operand.column(batch), self._operand.column_schema(batch)
        if column is None or schema is None or schema.type is not SchemaType.STRUCT:
            return None
        if column.null_count:
            required_struct(schema, None, self._purpose)
        plan = self._plans.of(schema)
        added = list[HeaderColumn]()
        for reader, header in plan.chosen:
            values = reader.column(column)
            if is_short(reader.field, values, column):
                return None
            added.append(HeaderColumn(key=header, values=values, schema=reader.schema))
        changed = with_headers(batch, added)
        if not self._moves:
            return [changed]
        left = plan.left.column(column)
        if left is None:
            return None
        return [self._operand.replaced_column(changed, plan.left.schema, left)]

    def _from_map(self, record: SourceRecord, entries: Mapping[Any, Any]) -> SourceRecord:
        headers = [Header(header, entries.get(name)) for name, header in self._pairs]
        changed = dataclasses.replace(record, headers=(*record.headers, *headers))
        if not self._moves:
            return changed
        left = {name: value for name, value in entries.items() if name not in self._fields}
        return self._operand.replaced(changed, None, left)

    def _from_struct(
        self, record: SourceRecord, schema: Schema, struct: Mapping[str, Any]
    ) -> SourceRecord:
        plan = self._plans.of(schema)
        headers = [_header(reader, header, struct) for reader, header in plan.chosen]
        changed = dataclasses.replace(record, headers=(*record.headers, *headers))
        if not self._moves:
            return changed
        return self._operand.replaced(changed, plan.left.schema, plan.left.value(struct))

    def _plan(self, schema: Schema) -> _Plan:
        readers = {each.name: each for each in field_readers(schema, defaults=self._defaults)}
        for name, _ in self._pairs:
            if name not in readers:
                raise RecordError(f"Unknown field: {name}")
        left = [each for name, each in readers.items() if name not in self._fields]
        return _Plan(
            [(readers[name], header) for name, header in self._pairs],
            struct_plan(struct_like(schema, [each.field for each in left]), left),
        )


def _header(reader: FieldReader, name: str, struct: Mapping[str, Any]) -> Header:
    value, schema = reader.value(struct), reader.schema
    if value is None and not schema.optional:
        shown = f"{schema.name}:{schema.type.name}" if schema.name else schema.type.name
        raise RecordError(f"A null value requires an optional schema but was Schema{{{shown}}}")
    return Header(name, value, schema)
