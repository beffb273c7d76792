"""The records of a block, as Python values."""

from __future__ import annotations

import functools
import io
from typing import Any

from fastavro import parse_schema, schemaless_reader

from headrace.sources.extractors.avro.columns import Column
from headrace.sources.extractors.avro.leaves import Values

# fastavro is asked for so many records at a time; each question costs about as much as reading a field.
_PAGE = 64
_DAMAGE = (EOFError, IndexError, ValueError, OverflowError)
_KEY = "v"


class DatumReader:
    """Reads values of *column*'s layout. Used by one thread."""

    def __init__(self, column: Column) -> None:
        layout = column.layout
        self._bare = not (isinstance(layout, dict) and layout.get("type") == "record")
        self._layout: dict[str, Any] = (
            {"type": "record", "name": "one", "fields": [{"name": _KEY, "type": layout}]}
            if self._bare
            else layout
        )

    # Both are made when they are needed: a small object is often scanned sooner than fastavro knows its schema.
    @functools.cached_property
    def _one(self) -> Any:  # noqa: ANN401 (fastavro's)
        return parse_schema(self._layout)

    @functools.cached_property
    def _page(self) -> Any:  # noqa: ANN401 (fastavro's)
        """So many records as one: a record's bytes are those of its fields in a row."""
        types = [self._layout, *[self._layout["name"]] * (_PAGE - 1)]
        fields = [{"name": f"p{index}", "type": each} for index, each in enumerate(types)]
        return parse_schema({"type": "record", "name": "page", "fields": fields})

    def read(self, block: io.BytesIO, count: int) -> tuple[Values, str | None]:
        """The next *count* values of *block*; fewer with the reason why the next one, where it is then, cannot be read."""
        rows = list[Any]()
        reason = self._read(block, count, rows)
        return [each[_KEY] for each in rows] if self._bare else rows, reason

    def _read(self, block: io.BytesIO, count: int, rows: Values) -> str | None:
        before, one = block.tell(), self._one
        page: Any = self._page if count >= _PAGE else None
        try:
            while count - len(rows) >= _PAGE:
                before = block.tell()
                found: Any = schemaless_reader(block, page, None)
                rows.extend(found.values())
        except _DAMAGE:
            # One of the page's records is damaged: read it again, one by one, up to that.
            block.seek(before)
        try:
            while len(rows) < count:
                before = block.tell()
                rows.append(schemaless_reader(block, one, None))
        except _DAMAGE as error:
            block.seek(before)
            # What fastavro read from is named by its address, which says nothing to anybody.
            return str(error).partition(" from <")[0] or "its bytes end too early"
        return None
