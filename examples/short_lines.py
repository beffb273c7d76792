"""A transformation and a predicate of one's own: long lines are cut, and empty ones are recognised."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc

from headrace.connect import Config, RecordError, SourceBatch, SourceRecord, setting


class ShortenConfig(Config):
    """What can be set; checked before anything starts."""

    most: int = setting("most.characters", at_least=1, doc="How many characters are kept.")


class ShortenTransform:
    """Keeps the beginning of each value, which must be text."""

    config_class = ShortenConfig
    version = "1.0"

    def configure(self, config: Mapping[str, str]) -> None:
        """Take ``most.characters``."""
        self.most = ShortenConfig.parse(config).most

    def apply(self, record: SourceRecord) -> SourceRecord:
        """One record; an error is reported with the place of the record."""
        if not isinstance(record.value, str):
            raise RecordError("Only text can be shortened.")
        return replace(record, value=record.value[: self.most])

    def apply_batch(self, batch: SourceBatch) -> Sequence[SourceBatch] | None:
        """The same for a whole column; what is no text, or lacks some, goes through ``apply``."""
        if not pa.types.is_string(batch.values.type) or batch.values.null_count:
            return None
        return [replace(batch, values=pc.utf8_slice_codeunits(batch.values, 0, self.most))]


class IsEmptyPredicate:
    """True of empty text."""

    def configure(self, config: Mapping[str, str]) -> None:
        """There is nothing to set."""

    def test(self, record: SourceRecord) -> bool:
        """Whether the value is empty."""
        return record.value == ""

    def test_batch(self, batch: SourceBatch) -> pa.BooleanArray | None:
        """The same for all rows of a batch of text."""
        if not pa.types.is_string(batch.values.type):
            return None
        return pc.fill_null(pc.equal(batch.values, ""), fill_value=False)
