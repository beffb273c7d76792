"""ReplaceField: removes and renames fields."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from headrace.connect.batch import SourceBatch
from headrace.connect.config import Config, Problem, setting
from headrace.connect.record import SourceRecord
from headrace.connect.schema import Field, Schema
from headrace.transforms.fields import NULLS_DOC, field_readers
from headrace.transforms.record_part import PAIR, RecordPart, list_problems, parts_of, required_name
from headrace.transforms.struct_plan import (
    Plans,
    StructChange,
    StructPlan,
    struct_like,
    struct_plan,
)


class ReplaceFieldConfig(Config):
    exclude: tuple[str, ...] = setting(
        default=(),
        importance="medium",
        doc="Fields to leave out, also where they are among those to include.",
    )
    include: tuple[str, ...] = setting(
        default=(), importance="medium", doc="The only fields to keep; empty keeps all."
    )
    renames: tuple[str, ...] = setting(
        default=(), importance="medium", doc="New names of fields, as pairs of old:new."
    )
    replace_null_with_default: bool = setting(default=True, importance="medium", doc=NULLS_DOC)

    def check(self) -> Iterator[Problem]:
        """Check that names are listed once, and that renames are pairs."""
        yield from list_problems("exclude", self.exclude, may_be_empty=True)
        yield from list_problems("include", self.include, may_be_empty=True)
        wrong = [text for text in self.renames if len(parts_of(text)) != PAIR]
        if wrong:
            message = f"Invalid value [{', '.join(self.renames)}] for configuration renames"
            yield "renames", f"{message}: Invalid rename mapping: {wrong[0]}"


class ReplaceField:
    """Removes and renames fields of structs and entries of maps."""

    config_class = ReplaceFieldConfig

    def __init__(self, operand: RecordPart) -> None:
        self._operand = operand

    def configure(self, config: Mapping[str, str]) -> None:
        settings = ReplaceFieldConfig.parse(config)
        self._names = _Names(
            exclude=frozenset(settings.exclude),
            include=frozenset(settings.include),
            renamed=dict(parts_of(text) for text in settings.renames),
        )
        self._defaults = settings.replace_null_with_default
        self._change = StructChange(
            operand=self._operand,
            purpose="field replacement",
            plans=Plans(self._plan),
            of_map=self._of_map,
        )

    def apply(self, record: SourceRecord) -> SourceRecord:
        return self._change.apply(record)

    def apply_batch(self, batch: SourceBatch) -> Sequence[SourceBatch] | None:
        """All rows at once where they have a schema."""
        return self._change.apply_batch(batch)

    def _of_map(self, entries: Mapping[Any, Any]) -> Mapping[Any, Any]:
        named = ((self._names.new(required_name(name)), value) for name, value in entries.items())
        return {name: value for name, value in named if name is not None}

    def _plan(self, schema: Schema) -> StructPlan:
        readers = field_readers(schema, defaults=self._defaults)
        named = [(self._names.new(reader.name), reader) for reader in readers]
        kept = [(name, reader) for name, reader in named if name is not None]
        changed = struct_like(schema, [Field(name, reader.schema) for name, reader in kept])
        return struct_plan(changed, [reader for _, reader in kept])


@dataclass(frozen=True, slots=True, kw_only=True)
class _Names:
    """The fields that stay, and their new names."""

    exclude: frozenset[str]
    include: frozenset[str]
    renamed: Mapping[str, str]

    def new(self, name: str) -> str | None:
        """The new name of the field *name*; ``None`` when it is removed."""
        if name in self.exclude or (self.include and name not in self.include):
            return None
        return self.renamed.get(name, name)
