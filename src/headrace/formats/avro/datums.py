"""The records of a block, as Python values."""

from __future__ import annotations

import functools
import io
from typing import Any, Final

import pyarrow as pa
from fastavro import parse_schema, schemaless_reader

from headrace.formats.avro.columns import Column
from headrace.formats.avro.leaves import UNFIT, Values

# fastavro is asked for so many records at a time; each question costs about as much as reading a field.
_PAGE = 64
PIECE: Final = 512
"""So many records become Arrow at a time: more of them as Python objects keep the garbage collector busy."""
_DAMAGE = (EOFError, IndexError, ValueError, OverflowError)
_KEY = "v"
# What is read as a page without fields is passed over, in half the time of reading it.
_NOTHING: Any = parse_schema({"type": "record", "name": "page", "fields": []})


class DatumReader:
    """Reads values of *column*'s layout. Used by one thread."""

    def __init__(self, column: Column) -> None:
        layout = column.layout
        self._column = column
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

    def built(self, block: io.BytesIO, count: int) -> pa.Array | None:
        """The next *count* values of *block* as a column; ``None``, and *block* not moved, when one is not as it should be."""
        before = block.tell()
        values, reason = self.read(block, count)
        try:
            if reason is None:
                return self._column.build(values)
        except UNFIT:
            pass
        block.seek(before)
        return None

    def pass_over(self, block: io.BytesIO, count: int) -> bool:
        """Move *block* behind the next *count* values; ``False`` when one of them cannot be read."""
        try:
            for _ in range(count // _PAGE):
                schemaless_reader(block, self._page, _NOTHING)
            for _ in range(count % _PAGE):
                schemaless_reader(block, self._one, None)
        except _DAMAGE:
            return False
        return True

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
