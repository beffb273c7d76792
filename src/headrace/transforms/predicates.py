"""Connect's predicates, which select the records for a transformation (KIP-585)."""

from __future__ import annotations

import re
from collections.abc import Mapping

import pyarrow as pa
import pyarrow.compute as pc

from headrace.connect.batch import SourceBatch
from headrace.connect.config import Config, setting
from headrace.connect.header_columns import HeaderColumns
from headrace.connect.record import SourceRecord
from headrace.java.regex import java_regex, regex_problem


class TopicNameMatchesConfig(Config):
    pattern: str = setting(
        importance="medium",
        non_empty=True,
        valid=regex_problem,
        doc="A Java regular expression that the whole name of the topic has to match.",
    )


class TopicNameMatches:
    """True of records whose topic's name matches."""

    config_class = TopicNameMatchesConfig

    def configure(self, config: Mapping[str, str]) -> None:
        self._pattern: re.Pattern[str] = java_regex(TopicNameMatchesConfig.parse(config).pattern)

    def test(self, record: SourceRecord) -> bool:
        """Whether the whole name matches."""
        return self._pattern.fullmatch(record.topic) is not None

    def test_batch(self, batch: SourceBatch) -> bool:
        """The same for all rows, which have one topic."""
        return self._pattern.fullmatch(batch.topic) is not None


class HasHeaderKeyConfig(Config):
    name: str = setting(importance="medium", non_empty=True, doc="The name of the header.")


class HasHeaderKey:
    """True of records with at least one header of a name."""

    config_class = HasHeaderKeyConfig

    def configure(self, config: Mapping[str, str]) -> None:
        self._name = HasHeaderKeyConfig.parse(config).name

    def test(self, record: SourceRecord) -> bool:
        """Whether one of the headers has the name."""
        return any(header.key == self._name for header in record.headers)

    def test_batch(self, batch: SourceBatch) -> bool | pa.BooleanArray:
        """The same for all rows, where their headers are columns."""
        if batch.headers is None:
            return False
        if isinstance(batch.headers, HeaderColumns):
            return any(column.key == self._name for column in batch.headers.columns)
        return pa.array(
            [any(header.key == self._name for header in headers) for headers in batch.headers],
            pa.bool_(),
        )


class RecordIsTombstoneConfig(Config):
    """:class:`RecordIsTombstone` has no settings."""


class RecordIsTombstone:
    """True of records without a value."""

    config_class = RecordIsTombstoneConfig

    def configure(self, config: Mapping[str, str]) -> None:
        """Nothing to configure."""

    def test(self, record: SourceRecord) -> bool:
        """Whether the value is null."""
        return record.value is None

    def test_batch(self, batch: SourceBatch) -> bool | pa.BooleanArray:
        """Which values are null."""
        return pc.is_null(batch.values) if batch.values.null_count else False
