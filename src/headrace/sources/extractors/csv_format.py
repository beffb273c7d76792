"""CSV as a format: its framing, and whose header names the fields where reading goes on in the middle."""

from __future__ import annotations

import json
from collections.abc import Mapping

from headrace.connect.errors import TaskFailedError
from headrace.connect.partition import OffsetValue
from headrace.sources.extractors.chunk import Resume
from headrace.sources.extractors.csv import CsvExtractor
from headrace.sources.extractors.csv_dialect import CsvDialect
from headrace.sources.extractors.csv_framing import csv_framing
from headrace.sources.extractors.row_format import RowFormat


def csv_format(dialect: CsvDialect) -> RowFormat:
    """The format of files written in *dialect*."""

    def extractor(
        native_key: str, resume: Resume, constants: Mapping[str, OffsetValue]
    ) -> CsvExtractor:
        return CsvExtractor(dialect, header=_header(native_key, dialect, resume, constants))

    return RowFormat(
        name=dialect.signature(), framing=csv_framing(dialect), extractor=extractor, splits=False
    )


def _header(
    native_key: str, dialect: CsvDialect, resume: Resume, constants: Mapping[str, OffsetValue]
) -> OffsetValue:
    """The names for a reader that begins behind the header, or ``None`` for one that meets it."""
    if not resume.anchor:
        return None
    if "header" in constants:
        return constants["header"]
    if dialect.names:
        return json.dumps(dialect.names)
    if dialect.header:
        raise TaskFailedError(
            f"{native_key}: Its offset points behind the header without saying what that held. Set only "
            "'recordCount' in the offset, or name the fields with csv.names."
        )
    return None
