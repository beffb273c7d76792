"""One schema for the records of all files, whatever the files' own ones are."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import lru_cache
from typing import Final

import pyarrow as pa

from headrace.connect.columns import column_of
from headrace.connect.errors import RecordError, TaskFailedError
from headrace.connect.schema import Schema
from headrace.formats.avro.defaults import default_value
from headrace.formats.avro.schema import connect_schema
from headrace.formats.avro.types import (
    AvroType,
    SchemaRefusedError,
    nullable_of,
    parsed,
)
from headrace.formats.schema_resolution import Resolve, resolved

_KEY: Final = "files.schema"


@lru_cache(maxsize=8)
def schema_of_text(text: str) -> Schema:
    """The schema that *text*, an Avro schema as JSON, stands for.

    Raises :class:`~headrace.formats.avro.types.SchemaRefusedError` for what is none.
    """
    return connect_schema(parsed(text.encode()))


def text_problem(text: str | None) -> str | None:
    """What is wrong with *text* as the setting's value, or ``None``."""
    if text is None:
        return None
    try:
        schema_of_text(text)
    except SchemaRefusedError as error:
        return f"It must be an Avro schema, as JSON: {error.why}"
    return next(_default_problems(parsed(text.encode())), None)


def _default_problems(kind: AvroType) -> Iterator[str]:
    """What is wrong with the defaults of fields somewhere within *kind*."""
    for each in kind.fields:
        told = each.default
        if told is None:
            told = each.type.properties.get("connect.default")
        if told is not None and not _fits(each.type, told):
            wanted = nullable_of(each.type) or each.type
            yield (
                f"The default of the field {each.name!r}, {json.dumps(told)}, is no value of its type, which is "
                f"{wanted.logical or wanted.name or wanted.kind}. Correct it, or remove it."
            )
    inner = [*(each.type for each in kind.fields), *kind.branches]
    for each in inner if kind.items is None else [kind.items]:
        yield from _default_problems(each)


def _fits(kind: AvroType, told: object) -> bool:
    """Whether *told*, a default as JSON, is a value of *kind*."""
    wanted = nullable_of(kind) or kind
    schema = connect_schema(wanted)
    value = default_value(wanted, schema, told)
    if wanted.kind == "enum" and value not in wanted.symbols:
        return False
    if wanted.kind == "fixed" and isinstance(told, str) and len(told) != wanted.size:
        return False
    try:
        column_of(schema, [value])
    except RecordError:
        return False
    return value is not None


class RecordSchema:
    """Resolves the values of the file at *path* to the schema *text*; without one each file keeps its own."""

    def __init__(self, text: str | None, path: str) -> None:
        self._wanted = None if text is None else schema_of_text(text)
        self._path = path
        self._resolve: Resolve | None = None

    def of(self, own: Schema | None) -> Schema | None:
        """The schema of the values of a file whose *own* one is this."""
        return self._wanted or own

    def values(self, values: pa.Array, own: Schema | None) -> pa.Array:
        """*values* of the schema *own*, resolved.

        Raises :class:`~headrace.connect.errors.TaskFailedError` when not all of them can be.
        """
        if self._wanted is None:
            return values
        if self._resolve is None:
            self._resolve = self._resolution(own, self._wanted)
        return self._resolve(values)

    def _resolution(self, own: Schema | None, wanted: Schema) -> Resolve:
        try:
            if own is None:
                raise RecordError("Its records have no schema.")
            return resolved(own, wanted)
        except RecordError as error:
            raise TaskFailedError(
                f"{self._path}: {error.reason} Change {_KEY}, or leave the file out of files.path."
            ) from error
