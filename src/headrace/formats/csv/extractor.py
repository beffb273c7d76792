"""CSV: each row becomes one JSON object, or one struct, with the header's names."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

import pyarrow as pa

from headrace.connect.partition import OffsetValue
from headrace.connect.schema import JSON_DOCUMENT, Schema
from headrace.formats.csv.cut_rows import CutRows
from headrace.formats.csv.dialect import CsvDialect
from headrace.formats.csv.fields import CsvFields
from headrace.formats.csv.objects import ObjectWriter
from headrace.formats.csv.rows import CsvRows
from headrace.formats.csv.structs import StructWriter
from headrace.formats.csv.types import FieldType
from headrace.formats.row_extractor import BadRow, Extracted
from headrace.formats.rows import RowBlock
from headrace.formats.text import EMPTY

_NOTHING = pa.ExtensionArray.from_storage(JSON_DOCUMENT, EMPTY)
_TYPE_ADVICE = "Correct the field, or its type in csv.types."


class CsvExtractor:
    """Rows of one file. Blank rows are no records; the header is none either.

    *header* is what :meth:`constants` said to an earlier reader; without it the first row tells the names.
    *inferred* are the types of the fields, in their order; ``None`` while nothing was inferred. *native_key*
    is what warnings call the file; *cut* tells of rows that are cut.
    """

    def __init__(
        self,
        dialect: CsvDialect,
        *,
        native_key: str = "",
        header: OffsetValue = None,
        inferred: Sequence[FieldType] | None = None,
        cut: CutRows | None = None,
    ) -> None:
        self._dialect = dialect
        self._native_key = native_key
        self._cut = cut or CutRows()
        self._inferred = inferred
        self._rows = CsvRows(dialect, json.loads(header) if isinstance(header, str) else None)
        self._fields: CsvFields | None = None
        self._writer: ObjectWriter | StructWriter | None = None
        self._take_names()

    @property
    def value_schema(self) -> Schema | None:
        """See :class:`~headrace.formats.row_extractor.RowExtractor`; that of structs needs the names."""
        return None if self._writer is None else self._writer.schema

    def constants(self) -> Mapping[str, OffsetValue]:
        """See :class:`~headrace.formats.row_extractor.RowExtractor`."""
        if self._fields is None:
            return {"header": ""} if self.needs_header else {}
        found = {"header": _text(self._fields.names)}
        if self._inferred is not None:
            found["types"] = _text([kind.name for kind in self._fields.types])
        return found

    @property
    def needs_header(self) -> bool:
        """See :class:`~headrace.formats.row_extractor.RowExtractor`."""
        return self._dialect.header and self._rows.names is None

    def extract(self, rows: RowBlock) -> Extracted:
        """See :class:`~headrace.formats.row_extractor.RowExtractor`."""
        found = self._rows.columns(rows)
        self._take_names()
        self._tell_cut()
        if self._writer is None or self._fields is None or not len(found.rows):
            return Extracted(values=_NOTHING, rows=found.rows, bad=found.bad)
        columns, kept, bad = found.columns, found.rows, found.bad
        wrong = self._fields.first_wrong(columns)
        if wrong is not None:
            bad = BadRow(row=int(kept[wrong[0]]), reason=wrong[1], advice=_TYPE_ADVICE)
            columns = [column.slice(0, wrong[0]) for column in columns]
            kept = kept[: wrong[0]]
        return Extracted(values=self._writer.values(columns), rows=kept, bad=bad)

    def _tell_cut(self) -> None:
        names, most = self._rows.names, self._rows.most_fields
        if most and names is not None:
            self._cut.tell(
                self._native_key, fields=most, expected=len(names), ragged=self._dialect.ragged
            )

    def _take_names(self) -> None:
        if self._fields is None and self._rows.names is not None:
            self._fields = CsvFields(self._rows.names, self._dialect, self._inferred)
            writer = StructWriter if self._dialect.structs else ObjectWriter
            self._writer = writer(self._fields)


def _text(names: object) -> str:
    return json.dumps(names, ensure_ascii=False, separators=(",", ":"))
