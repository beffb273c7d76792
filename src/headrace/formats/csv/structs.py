"""Columns of text become structs with a schema."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from headrace.connect.schema import Field, Schema, SchemaType, arrow_type
from headrace.formats.csv.fields import CsvFields
from headrace.formats.csv.types import FieldType


class StructWriter:
    """Makes structs of rows, each of *fields* an optional one of its type, in their order."""

    def __init__(self, fields: CsvFields) -> None:
        self._fields = fields
        pairs = zip(fields.names, fields.types, strict=True)
        self.schema = Schema(
            type=SchemaType.STRUCT,
            fields=tuple(Field(name, kind.schema) for name, kind in pairs),
        )

    def values(self, columns: Sequence[pa.StringArray]) -> pa.StructArray:
        """The structs of rows whose fields are all of their types."""
        pairs = zip(self._fields.types, columns, strict=True)
        return pa.StructArray.from_arrays(
            [self._column(kind, texts) for kind, texts in pairs],
            fields=list(arrow_type(self.schema)),
        )

    def _column(self, kind: FieldType, texts: pa.StringArray) -> pa.Array:
        nulls = self._fields.nulls(kind, texts)
        return kind.values(texts if nulls is None else pc.if_else(nulls, None, texts))
