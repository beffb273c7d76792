"""InsertHeader: adds a header to every record, with a value given as text."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence

from headrace.connect.batch import SourceBatch
from headrace.connect.config import Config, setting
from headrace.connect.header_columns import HeaderColumn
from headrace.connect.record import Header, SourceRecord
from headrace.transforms.inferred_value import inferred
from headrace.transforms.record_part import with_headers


def _literal_problem(text: str) -> str | None:
    try:
        inferred(text)
    except ValueError as error:
        return f"Kafka Connect would infer a value that has no schema: {error}"
    return None


class InsertHeaderConfig(Config):
    header: str = setting(importance="high", doc="The name of the header.")
    value_literal: str = setting(
        importance="high",
        valid=_literal_problem,
        doc="The header's value. A text that looks like a number, a boolean, a date, a time, a list or a map becomes one.",
    )


class InsertHeader:
    """Adds a header after the others."""

    config_class = InsertHeaderConfig

    def configure(self, config: Mapping[str, str]) -> None:
        parsed = InsertHeaderConfig.parse(config)
        schema, value = inferred(parsed.value_literal)
        self._header = Header(parsed.header, value, schema)

    def apply(self, record: SourceRecord) -> SourceRecord:
        return dataclasses.replace(record, headers=(*record.headers, self._header))

    def apply_batch(self, batch: SourceBatch) -> Sequence[SourceBatch]:
        key, value, schema = self._header.key, self._header.value, self._header.schema
        return [with_headers(batch, [HeaderColumn(key=key, value=value, schema=schema)])]
