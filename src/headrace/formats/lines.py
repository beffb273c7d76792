"""Plain lines: each line is one string."""

from __future__ import annotations

import re
from collections.abc import Mapping

import pyarrow as pa

from headrace.connect.partition import OffsetValue
from headrace.connect.schema import STRING, Schema
from headrace.formats.row_extractor import Extracted
from headrace.formats.rows import RowBlock
from headrace.formats.text import text_column

# Half a surrogate pair, whole or broken off: one wrong character to Java, one for each byte to Python.
_HALF_A_PAIR = re.compile(rb"\xed[\xa0-\xbf][\x80-\xbf]?")


class LinesExtractor:
    """Every line is a record, an empty one too; its value is its text without the line end.

    With *replace*, bytes that are not UTF-8 become U+FFFD, as many as Java makes of them; otherwise their line is
    bad.
    """

    def __init__(self, *, replace: bool = False) -> None:
        self._replace = replace

    @property
    def value_schema(self) -> Schema | None:
        """See :class:`~headrace.formats.row_extractor.RowExtractor`."""
        return STRING

    @property
    def needs_header(self) -> bool:
        """See :class:`~headrace.formats.row_extractor.RowExtractor`."""
        return False

    def extract(self, rows: RowBlock) -> Extracted:
        """See :class:`~headrace.formats.row_extractor.RowExtractor`."""
        values, bad = text_column(rows)
        if bad is not None and self._replace:
            replaced = [_replaced(row) for row in rows.column().to_pylist()]
            return Extracted(values=pa.array(replaced, pa.utf8()))
        return Extracted(values=values, bad=bad)

    def constants(self) -> Mapping[str, OffsetValue]:
        """See :class:`~headrace.formats.row_extractor.RowExtractor`."""
        return {}


def _replaced(row: bytes) -> str:
    return _HALF_A_PAIR.sub("\ufffd".encode(), row).decode(errors="replace")
