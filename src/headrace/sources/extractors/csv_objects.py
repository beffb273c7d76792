"""Columns of text become JSON objects, column by column."""

from __future__ import annotations

import json
from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headrace.sources.extractors.csv_dialect import CsvDialect

# What Python makes a number of, JSON may not: no leading zeros, plus signs, spaces or infinities.
_LITERALS = {
    "integer": r"^-?(0|[1-9][0-9]*)$",
    "number": r"^-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?$",
    "boolean": r"^(?i:true|false)$",
}
_FIRST_PRINTABLE = 32


class ObjectWriter:
    """Writes rows as JSON objects with *names*; texts of typed fields are kept as they are."""

    def __init__(self, names: Sequence[str], dialect: CsvDialect) -> None:
        self.names = tuple(names)
        self._types = dict(dialect.types)
        self._null = dialect.null

    def write(
        self, columns: Sequence[pa.StringArray]
    ) -> tuple[pa.StringArray, tuple[int, str] | None]:
        """The objects up to the first row with a field that is not of its type, and what is wrong there."""
        wrong = self._first_wrong(columns)
        if wrong is not None:
            columns = [column.slice(0, wrong[0]) for column in columns]
        pieces = list[pa.Array | pa.Scalar]()
        text = "{"
        for name, column in zip(self.names, columns, strict=True):
            text += f"{',' if pieces else ''}{json.dumps(name, ensure_ascii=False)}:"
            before, value, after = self._value(name, column)
            pieces += [pa.scalar(text + before), value]
            text = after
        joined = pc.binary_join_element_wise(*pieces, pa.scalar(text + "}"), pa.scalar(""))
        return joined, wrong

    def _value(self, name: str, column: pa.StringArray) -> tuple[str, pa.StringArray, str]:
        """A field's values, with the text before and behind each of them."""
        kind = self._types.get(name, "string")
        if kind == "string" and self._null is None:
            return '"', _escaped(column), '"'
        if kind == "string":
            quoted = pc.binary_join_element_wise("", _escaped(column), "", '"')
        else:
            quoted = pc.utf8_lower(column) if kind == "boolean" else column
        return "", pc.if_else(self._nulls(column, kind), "null", quoted), ""

    def _nulls(self, column: pa.StringArray, kind: str) -> pa.BooleanArray:
        nulls = pc.equal(column, "") if kind != "string" else _NO
        if self._null is not None:
            nulls = pc.or_(nulls, pc.equal(column, self._null))
        return nulls

    def _first_wrong(self, columns: Sequence[pa.StringArray]) -> tuple[int, str] | None:
        """The first row with a field that is not of its type, and a sentence about it."""
        found = list[tuple[int, str]]()
        for name, column in zip(self.names, columns, strict=True):
            kind = self._types.get(name, "string")
            if kind == "string":
                continue
            right = pc.match_substring_regex(column, _LITERALS[kind])
            right = pc.or_(right, self._nulls(column, kind))
            row = pc.index(right, _NO).as_py()
            if row >= 0:
                text = column[row].as_py()[:_SHOWN]
                found.append(
                    (row, f"The field {name!r} holds {text!r}, which is not of type {kind}.")
                )
        return min(found, default=None)


_SHOWN = 80
_NO = pa.scalar(False)  # noqa: FBT003


def _escaped(column: pa.StringArray) -> pa.StringArray:
    """*column* as it stands between the quotes of JSON strings."""
    text = _bytes_of(column)
    if (text == ord("\\")).any():
        column = pc.replace_substring(column, "\\", "\\\\")
    if (text == ord('"')).any():
        column = pc.replace_substring(column, '"', '\\"')
    low = text < _FIRST_PRINTABLE
    for code in np.unique(text[low]) if low.any() else ():
        character = chr(code)
        column = pc.replace_substring(column, character, json.dumps(character)[1:-1])
    return column


def _bytes_of(column: pa.StringArray) -> np.ndarray:
    offsets, text = column.buffers()[1:]
    if text is None or not len(column):
        return np.array([], np.uint8)
    borders = np.frombuffer(offsets, np.int32)[column.offset : column.offset + len(column) + 1]
    return np.frombuffer(text, np.uint8)[borders[0] : borders[-1]]
