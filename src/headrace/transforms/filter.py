"""Filter: drops every record that it is given; which ones those are is for its predicate to say."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from headrace.connect.batch import SourceBatch
from headrace.connect.config import Config
from headrace.connect.record import SourceRecord


class FilterConfig(Config):
    """:class:`Filter` has no settings."""


class Filter:
    """Drops records; their offsets move all the same."""

    config_class = FilterConfig

    def configure(self, config: Mapping[str, str]) -> None:
        """There is nothing to take."""

    def apply(self, record: SourceRecord) -> SourceRecord | None:
        """Nothing goes on."""

    def apply_batch(self, batch: SourceBatch) -> Sequence[SourceBatch]:
        """Nothing goes on."""
        return ()
