"""The fields that say where a record comes from, behind those that it has: in structs and in rows of CSV."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final

import pyarrow as pa
import pyarrow.compute as pc

from headrace.connect.errors import TaskFailedError
from headrace.connect.header_columns import HeaderColumn
from headrace.connect.schema import JSON_DOCUMENT, Field, Schema, SchemaType, arrow_type
from headrace.connectors.files.details import SplitDetails
from headrace.connectors.files.records.facts import FACTS, RecordFacts
from headrace.connectors.files.records.schema import schema_of_text
from headrace.formats.chunk import Chunk

if TYPE_CHECKING:
    from headrace.connect.config import Problem
    from headrace.connectors.files.config import FilesConfig

_KEY: Final = "files.fields"


def fields_of(entries: Sequence[str]) -> dict[str, str]:
    """What *entries* of the setting ask for, and the name that each gets; ``file_`` and what it is by default."""
    pairs = (entry.partition(":") for entry in entries)
    return {fact: name or f"file_{fact}" for fact, _, name in pairs}


def entries_problem(entries: Sequence[str]) -> str | None:
    """What is wrong with *entries* of the setting, or ``None``."""
    known = ", ".join(FACTS)
    for entry in entries:
        fact, colon, name = entry.partition(":")
        if fact not in FACTS or bool(colon) != bool(name.strip()):
            return f"{entry!r} must be one of {known}; a colon and the field's name may follow."
    fields = fields_of(entries)
    if len(fields) < len(entries) or len(set(fields.values())) < len(fields):
        return "Ask for each once, and give each a name of its own."
    return None


def field_problems(config: FilesConfig) -> Iterator[Problem]:
    """Names of fields that other settings give to a file's own ones."""
    for key, names in (
        ("csv.names", config.csv_names),
        ("parquet.columns", config.parquet_columns),
    ):
        for name in sorted(set(names) & set(config.fields.values())):
            yield _KEY, f"{_taken(name)} {key} names it, too."
    if config.schema_text is not None:
        names = {each.name for each in schema_of_text(config.schema_text).fields}
        for name in sorted(names & set(config.fields.values())):
            yield _KEY, f"{_taken(name)} files.schema has it, too."


class RecordFields:
    """Adds the fields that *names* asks for to one split's records, column by column; to all or to none.

    *has_bytes* says that the anchors of its format are bytes.
    """

    def __init__(
        self, names: Mapping[str, str], path: str, details: SplitDetails, *, has_bytes: bool
    ) -> None:
        self._path = path
        self._facts = RecordFacts(names, path, details, has_bytes=has_bytes)
        self._wanted = bool(self._facts.schemas)
        self._made: tuple[Schema, Schema] | None = None

    def schema(self, own: Schema | None) -> Schema | None:
        """The schema of records whose *own* one is this.

        Raises :class:`~headrace.connect.errors.TaskFailedError` where they have no fields, or such ones already.
        """
        if own is None or not self._wanted:
            return own
        # Asked for every batch; those who compare schemas begin with whether they are the same object.
        if self._made is None or self._made[0] is not own:
            self._made = own, self._widened(own)
        return self._made[1]

    def of(
        self,
        values: pa.Array,
        own: Schema | None,
        chunk: Chunk,
        rows: slice,
    ) -> pa.Array:
        """*values* of the schema *own*, which are of *rows* of *chunk*, with the fields. Raises as :meth:`schema`."""
        if not self._wanted:
            return values
        told = self._facts.of(chunk, rows)
        if values.type == JSON_DOCUMENT:
            self._check(json.loads(str(chunk.constants.get("header", "[]"))))
            return _spliced(values, told)
        schema = self.schema(own)
        if schema is None:
            raise self._no_structs()
        return _with_columns(values, told, schema)

    def _widened(self, own: Schema) -> Schema:
        if own.type is not SchemaType.STRUCT:
            raise self._no_structs()
        self._check([each.name for each in own.fields])
        # Optional, so that a registry takes them for a new version of a schema that it has.
        added = (Field(name, each.as_optional()) for name, each in self._facts.schemas.items())
        return dataclasses.replace(own, fields=(*own.fields, *added))

    def _check(self, names: Sequence[str]) -> None:
        for name in self._facts.schemas:
            if name in names:
                raise TaskFailedError(
                    f"{self._path}: {_taken(name)} The file's records have it already."
                )

    def _no_structs(self) -> TaskFailedError:
        return TaskFailedError(
            f"{self._path}: Its records are no structs, so that no field can be added. Use files.headers "
            f"instead of {_KEY}."
        )


def says_last_field(values: pa.Array) -> pa.Array:
    """*values*, which are one record whose last field says that it is not its file's last one, saying that it is."""
    if values.type == JSON_DOCUMENT:
        texts = pc.utf8_slice_codeunits(values.storage, 0, -len("false}"))
        texts = pc.binary_join_element_wise(texts, "true}", "")
        return pa.ExtensionArray.from_storage(JSON_DOCUMENT, texts)
    *others, last = (values.field(index) for index in range(values.type.num_fields))
    columns = [*others, pa.repeat(pa.scalar(value=True, type=last.type), len(last))]
    return pa.StructArray.from_arrays(columns, fields=list(values.type), mask=_nulls(values))


def _taken(name: str) -> str:
    return f"There would be two fields {name!r}: give another name behind a colon, as in name:{name}_2."


def _with_columns(values: pa.StructArray, told: Sequence[HeaderColumn], schema: Schema) -> pa.Array:
    fields = list(arrow_type(schema))
    columns = [values.field(index) for index in range(values.type.num_fields)]
    kinds = [each.type for each in fields[len(columns) :]]
    columns += [
        pa.repeat(pa.scalar(each.value, kind), len(values)) if each.values is None else each.values
        for each, kind in zip(told, kinds, strict=True)
    ]
    return pa.StructArray.from_arrays(columns, fields=fields, mask=_nulls(values))


def _nulls(values: pa.Array) -> pa.Array | None:
    return values.is_null() if values.null_count else None


def _spliced(documents: pa.ExtensionArray, told: Sequence[HeaderColumn]) -> pa.ExtensionArray:
    """*documents*, all of them objects with members, with those that are *told*."""
    pieces: list[pa.Array | pa.Scalar] = [pc.utf8_slice_codeunits(documents.storage, 0, -1)]
    text = ""
    for each in told:
        text += f",{json.dumps(each.key, ensure_ascii=False)}:"
        if each.values is None:
            text += json.dumps(each.value, ensure_ascii=False)
        else:
            pieces += [pa.scalar(text), each.values.cast(pa.utf8())]
            text = ""
    joined = pc.binary_join_element_wise(*pieces, pa.scalar(text + "}"), pa.scalar(""))
    return pa.ExtensionArray.from_storage(JSON_DOCUMENT, joined)
