"""The key or the value of records: what a transformation is about that comes as ``$Key`` and as ``$Value``."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Final

import pyarrow as pa

from headrace.connect.batch import SourceBatch
from headrace.connect.record import SourceRecord
from headrace.connect.schema import Schema


@dataclass(frozen=True, slots=True)
class Operand:
    """One side of records, of single ones and of batches of them. Pure."""

    is_key: bool

    def value(self, record: SourceRecord) -> object:
        """The key or the value of *record*."""
        return record.key if self.is_key else record.value

    def schema(self, record: SourceRecord) -> Schema | None:
        """Its schema, if it has one."""
        return record.key_schema if self.is_key else record.value_schema

    def replaced(self, record: SourceRecord, schema: Schema | None, value: object) -> SourceRecord:
        """*record* with another key or value."""
        if self.is_key:
            return dataclasses.replace(record, key_schema=schema, key=value)
        return dataclasses.replace(record, value_schema=schema, value=value)

    def column(self, batch: SourceBatch) -> pa.Array | None:
        """The keys or values of *batch*; ``None`` when it has no keys."""
        return batch.keys if self.is_key else batch.values

    def column_schema(self, batch: SourceBatch) -> Schema | None:
        """The schema of the keys or values of *batch*, if they have one."""
        return batch.key_schema if self.is_key else batch.value_schema

    def replaced_column(
        self, batch: SourceBatch, schema: Schema | None, column: pa.Array
    ) -> SourceBatch:
        """*batch* with other keys or values, one for each row."""
        if self.is_key:
            return dataclasses.replace(batch, key_schema=schema, keys=column)
        return dataclasses.replace(batch, value_schema=schema, values=column)


KEY: Final = Operand(is_key=True)
VALUE: Final = Operand(is_key=False)
