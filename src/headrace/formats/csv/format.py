"""CSV as a format: its framing, and whose header names the fields where reading goes on in the middle."""

from __future__ import annotations

import json
from collections.abc import Mapping

from headrace.connect.errors import TaskFailedError
from headrace.connect.partition import OffsetValue
from headrace.connect.reread_commands import ALL_ANEW
from headrace.formats.chunk import Resume
from headrace.formats.csv.cut_rows import CutRows
from headrace.formats.csv.dialect import CsvDialect
from headrace.formats.csv.extractor import CsvExtractor
from headrace.formats.csv.framing import csv_framing
from headrace.formats.csv.inference import TYPES, look_at_types
from headrace.formats.csv.types import FieldType, field_type
from headrace.formats.row_format import RowFormat
from headrace.formats.text_encoding import TextEncoding


def csv_format(
    dialect: CsvDialect, encoding: TextEncoding | None = None, *, cut: CutRows | None = None
) -> RowFormat:
    """The format of files written in *dialect*, and in *encoding* where they are not UTF-8.

    It splits where every line end ends a row, and no range has to know what the file begins with. A header may
    come behind blank lines, in any range. *cut* tells of rows that are cut.
    """
    framing = csv_framing(dialect)
    told = cut or CutRows()

    def extractor(
        native_key: str, resume: Resume, constants: Mapping[str, OffsetValue]
    ) -> CsvExtractor:
        header = _header(native_key, dialect, resume, constants)
        inferred = _inferred(native_key, dialect, constants)
        return CsvExtractor(
            dialect, native_key=native_key, header=header, inferred=inferred, cut=told
        )

    return RowFormat(
        name=dialect.signature(),
        framing=framing,
        extractor=extractor,
        look=look_at_types(dialect, encoding),
        splits=framing.resyncs and not (dialect.header or dialect.infer) and bool(dialect.names),
        encoding=encoding,
    )


def _header(
    native_key: str, dialect: CsvDialect, resume: Resume, constants: Mapping[str, OffsetValue]
) -> OffsetValue:
    """The names for a reader that begins behind the header, or ``None`` for one that meets it."""
    if not resume.anchor:
        return None
    if "header" in constants:
        # Empty, where so far there was nothing but what comes before the header.
        return constants["header"] or None
    if dialect.names:
        return json.dumps(dialect.names)
    if dialect.header:
        raise TaskFailedError(
            f"{native_key}: Its offset points behind the header without saying what that held. Name the fields "
            f"with csv.names; or {ALL_ANEW}."
        )
    return None


def _inferred(
    native_key: str, dialect: CsvDialect, constants: Mapping[str, OffsetValue]
) -> list[FieldType] | None:
    """The fields' types, in their order, that were inferred now or by an earlier reader."""
    if not dialect.infer or TYPES not in constants:
        return None
    told = str(constants[TYPES])
    try:
        kinds = [field_type(name) for name in json.loads(told)]
    except (ValueError, TypeError):
        kinds = [None]
    known = [kind for kind in kinds if kind is not None]
    if len(known) < len(kinds):
        raise TaskFailedError(
            f"{native_key}: Its offset has the types {told}, which must be a list in JSON of types that are "
            f"known. To have them inferred again, {ALL_ANEW}."
        )
    return known
