"""Flatten: moves nested fields to the top level, under names joined from the path to them."""

from __future__ import annotations

import dataclasses
import datetime as dt
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from headrace.connect.batch import SourceBatch
from headrace.connect.config import Config, setting
from headrace.connect.errors import RecordError
from headrace.connect.record import SourceRecord
from headrace.connect.schema import Field, Schema, SchemaType
from headrace.transforms.fields import FieldAccessor, FieldReader, field_readers
from headrace.transforms.record_part import RecordPart, java_class, required_name
from headrace.transforms.struct_plan import (
    Plans,
    StructChange,
    StructPlan,
    struct_like,
    struct_plan,
)

# Types that Kafka Connect supports with a schema only. It does not support decimals without a schema either: numbers of
# JSON are doubles there; here, those with more digits than a double has are decimals.
_UNKNOWN: Final = (dt.date, dt.time)


class FlattenConfig(Config):
    delimiter: str = setting(
        default=".", importance="medium", doc="The text between the names that are joined."
    )


class Flatten:
    """Flattens structs in structs, or maps in maps, to one level; arrays stay."""

    config_class = FlattenConfig

    def __init__(self, operand: RecordPart) -> None:
        self._operand = operand

    def configure(self, config: Mapping[str, str]) -> None:
        self._delimiter = FlattenConfig.parse(config).delimiter
        self._change = StructChange(
            operand=self._operand,
            purpose="flattening",
            plans=Plans(self._plan),
            of_map=lambda entries: dict(self._entries(entries, "")),
        )

    def apply(self, record: SourceRecord) -> SourceRecord:
        return self._change.apply(record)

    def apply_batch(self, batch: SourceBatch) -> Sequence[SourceBatch] | None:
        """All rows at once where they have a schema."""
        return self._change.apply_batch(batch)

    def _entries(self, entries: Mapping[Any, Any], prefix: str) -> Iterator[tuple[str, Any]]:
        for name, value in entries.items():
            joined = self._joined(prefix, required_name(name))
            if isinstance(value, Mapping):
                yield from self._entries(value, joined)
            elif isinstance(value, _UNKNOWN):
                raise RecordError(
                    f"Flatten transformation was passed a value of type class {java_class(value)} "
                    "which is not supported by Connect's data API"
                )
            else:
                yield joined, value

    def _joined(self, prefix: str, name: str) -> str:
        return f"{prefix}{self._delimiter}{name}" if prefix else name

    def _plan(self, schema: Schema) -> StructPlan:
        leaves = list(
            self._leaves(schema, _Above(optional=schema.optional, default=schema.default))
        )
        changed = struct_like(schema, [field for field, _ in leaves])
        plan = struct_plan(changed, [way for _, way in leaves])
        # A null struct has no fields to flatten: they are null, or a default of the struct supplies theirs.
        return dataclasses.replace(plan, leaves_nulls=True)

    def _leaves(self, schema: Schema, above: _Above) -> Iterator[tuple[Field, FieldAccessor]]:
        for reader in field_readers(schema, defaults=True):
            name = self._joined(above.prefix, reader.name)
            optional = above.optional or reader.schema.optional
            default = above.default_of(reader)
            if reader.schema.type is SchemaType.STRUCT:
                # The default of a struct becomes the defaults of its fields.
                way = (*above.way, dataclasses.replace(reader, default=None))
                inner = _Above(prefix=name, optional=optional, default=default, way=way)
                yield from self._leaves(reader.schema, inner)
            elif reader.schema.type is SchemaType.MAP:
                raise RecordError(
                    "Flatten transformation does not support MAP for record with schemas "
                    f"(for field {name})."
                )
            else:
                flat = dataclasses.replace(reader.schema, optional=optional, default=default)
                yield Field(name, flat), FieldAccessor((*above.way, reader))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Above:
    """What a field inherits from the structs around it: a prefix, whether it may be null, a default."""

    prefix: str = ""
    optional: bool
    default: Any
    way: tuple[FieldReader, ...] = ()

    def default_of(self, reader: FieldReader) -> Any:  # noqa: ANN401 (whatever the field holds)
        if reader.schema.default is not None or not isinstance(self.default, Mapping):
            return reader.schema.default
        return self.default.get(reader.name)
