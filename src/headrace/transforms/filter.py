"""Filter: drops every record that it gets; its predicate selects these."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from headrace.connect.batch import SourceBatch
from headrace.connect.config import Config
from headrace.connect.record import SourceRecord


class FilterConfig(Config):
    """:class:`Filter` has no settings."""


class Filter:
    """Drops records; their offsets are committed nevertheless."""

    config_class = FilterConfig

    def configure(self, config: Mapping[str, str]) -> None:
        """Nothing to configure."""

    def apply(self, record: SourceRecord) -> SourceRecord | None:
        """Drop the record."""

    def apply_batch(self, batch: SourceBatch) -> Sequence[SourceBatch]:
        """Drop all rows."""
        return ()
