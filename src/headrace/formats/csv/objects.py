"""Columns of text become JSON objects, column by column."""

from __future__ import annotations

import json
from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headrace.connect.schema import JSON_DOCUMENT
from headrace.formats.csv.fields import CsvFields
from headrace.formats.csv.types import FieldType

_FIRST_PRINTABLE = 32


class ObjectWriter:
    """Writes rows as JSON objects with the names of *fields*; texts of typed fields are kept as they are."""

    schema = None

    def __init__(self, fields: CsvFields) -> None:
        self._fields = fields

    def values(self, columns: Sequence[pa.StringArray]) -> pa.ExtensionArray:
        """The objects of rows whose fields are all of their types."""
        pieces = list[pa.Array | pa.Scalar]()
        text = "{"
        for name, kind, column in zip(self._fields.names, self._fields.types, columns, strict=True):
            text += f"{',' if pieces else ''}{json.dumps(name, ensure_ascii=False)}:"
            before, value, after = self._value(kind, column)
            pieces += [pa.scalar(text + before), value]
            text = after
        joined = pc.binary_join_element_wise(*pieces, pa.scalar(text + "}"), pa.scalar(""))
        return pa.ExtensionArray.from_storage(JSON_DOCUMENT, joined)

    def _value(self, kind: FieldType, column: pa.StringArray) -> tuple[str, pa.StringArray, str]:
        """A field's values, with the text before and behind each of them."""
        nulls = self._fields.nulls(kind, column)
        if kind.quoted and nulls is None:
            return '"', _escaped(column), '"'
        if kind.quoted:
            value = pc.binary_join_element_wise("", _escaped(column), "", '"')
        else:
            value = pc.utf8_lower(column) if kind.name == "boolean" else column
        return "", value if nulls is None else pc.if_else(nulls, "null", value), ""


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
