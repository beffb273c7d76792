"""HeaderFrom: fields of a key or value as headers."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal

from headrace.connect.batch import SourceBatch
from headrace.connect.columns import JSON_NULL
from headrace.connect.config import Config, Problem, setting
from headrace.connect.errors import RecordError
from headrace.connect.header_columns import HeaderColumn
from headrace.connect.record import Header, SourceRecord
from headrace.connect.schema import Field, Schema, SchemaType
from headrace.transforms.header_appending import with_headers
from headrace.transforms.operand import Operand
from headrace.transforms.remembered import Remembered
from headrace.transforms.requiring import required_map, required_struct
from headrace.transforms.struct_fields import (
    like_struct,
    read_columns,
    read_field,
    read_struct,
    struct_column,
)


def _empty_problem(items: Sequence[str]) -> str | None:
    return None if items else "Empty list"


class HeaderFromConfig(Config):
    """Settings of :class:`HeaderFrom`."""

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
    replace_null_with_default: bool = setting(
        default=True, doc="Whether fields that are null and have a default count as it."
    )

    def check(self) -> Iterator[Problem]:
        """Every field needs its header."""
        if len(self.fields) != len(self.headers):
            told = "'fields' config must have the same number of elements as 'headers' config."
            yield "fields", told


class HeaderFrom:
    """Copies or moves fields into headers, behind those that are there."""

    config_class = HeaderFromConfig

    def __init__(self, operand: Operand) -> None:
        self._operand = operand

    def configure(self, config: Mapping[str, str]) -> None:
        """Take which fields become which headers."""
        parsed = HeaderFromConfig.parse(config)
        self._pairs = tuple(zip(parsed.fields, parsed.headers, strict=True))
        self._fields = frozenset(parsed.fields)
        self._moves = parsed.operation == "move"
        self._purpose = f"header {parsed.operation}"
        self._defaults = parsed.replace_null_with_default
        self._left = Remembered(self._without_fields)

    def apply(self, record: SourceRecord) -> SourceRecord:
        """*record* with the headers; without schema a field that is not there becomes a header of null."""
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
        columns = dict(
            zip(
                (each.name for each in schema.fields),
                read_columns(column, schema, defaults=self._defaults),
                strict=True,
            )
        )
        added = [
            HeaderColumn(key=header, values=columns[field.name], schema=field.schema)
            for field, header in self._chosen(schema)
        ]
        changed = with_headers(batch, added)
        if not self._moves:
            return [changed]
        left = self._left(schema)
        rest = struct_column(left, [columns[each.name] for each in left.fields], len(batch))
        return [self._operand.replaced_column(changed, left, rest)]

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
        headers = [
            Header(header, read_field(struct, field, defaults=self._defaults), field.schema)
            for field, header in self._chosen(schema)
        ]
        changed = dataclasses.replace(record, headers=(*record.headers, *headers))
        if not self._moves:
            return changed
        left = self._left(schema)
        return self._operand.replaced(
            changed, left, read_struct(struct, left, defaults=self._defaults)
        )

    def _chosen(self, schema: Schema) -> list[tuple[Field, str]]:
        """The fields that become headers, with the names of these."""
        fields = {each.name: each for each in schema.fields}
        for name, _ in self._pairs:
            if name not in fields:
                raise RecordError(f"Unknown field: {name}")
        return [(fields[name], header) for name, header in self._pairs]

    def _without_fields(self, schema: Schema) -> Schema:
        left = [each for each in schema.fields if each.name not in self._fields]
        return like_struct(schema, left)
