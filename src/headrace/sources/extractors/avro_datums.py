"""The records of a block, as Python values."""

from __future__ import annotations

import io
from typing import Any

from fastavro import parse_schema, schemaless_reader

from headrace.sources.extractors.avro_columns import Column, Values

# fastavro is asked for so many records at a time; each question costs about as much as reading a field.
_PAGE = 64
_DAMAGE = (EOFError, IndexError, ValueError, OverflowError)
_KEY = "v"


class DatumReader:
    """Reads values of *column*'s layout. Used by one thread."""

    def __init__(self, column: Column) -> None:
        layout = column.layout
        self._bare = not (isinstance(layout, dict) and layout.get("type") == "record")
        one: dict[str, Any] = (
            {"type": "record", "name": "one", "fields": [{"name": _KEY, "type": layout}]}
            if self._bare
            else layout
        )
        # The bytes of a record are those of its fields in a row, so a page is a record of records.
        types = [one, *[one["name"]] * (_PAGE - 1)]
        fields = [{"name": f"p{index}", "type": each} for index, each in enumerate(types)]
        self._one = parse_schema(one)
        self._page = parse_schema({"type": "record", "name": "page", "fields": fields})

    def read(self, block: io.BytesIO, count: int) -> tuple[Values, str | None]:
        """The next *count* values of *block*; fewer with the reason why the next one cannot be read."""
        rows = list[Any]()
        reason = self._read(block, count, rows)
        return [each[_KEY] for each in rows] if self._bare else rows, reason

    def _read(self, block: io.BytesIO, count: int, rows: Values) -> str | None:
        before = block.tell()
        try:
            while count - len(rows) >= _PAGE:
                before = block.tell()
                page: Any = schemaless_reader(block, self._page, None)
                rows.extend(page.values())
        except _DAMAGE:
            # One of the page's records is damaged: read it again, one by one, up to that.
            block.seek(before)
        try:
            while len(rows) < count:
                rows.append(schemaless_reader(block, self._one, None))
        except _DAMAGE as error:
            return str(error) or "its bytes end too early"
        return None
