"""TimestampRouter: the topic of a record by its timestamp."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Mapping, Sequence

from headrace.connect.batch import SourceBatch
from headrace.connect.config import Config, setting
from headrace.connect.errors import RecordError
from headrace.connect.record import SourceRecord
from headrace.java.date_format import formatted, pattern_problem, tokens, unchanging_millis
from headrace.transforms.record_part import runs


class TimestampRouterConfig(Config):
    topic_format: str = setting(
        default="${topic}-${timestamp}",
        importance="high",
        doc="The new name of the topic. ${topic} stands for the old name, ${timestamp} for the record's time.",
    )
    timestamp_format: str = setting(
        default="yyyyMMdd",
        importance="high",
        valid=pattern_problem,
        doc="How ${timestamp} is written, as a pattern of Java's SimpleDateFormat: in UTC, and in English.",
    )


class TimestampRouter:
    """Renames topics; a record without a timestamp is refused."""

    config_class = TimestampRouterConfig

    def configure(self, config: Mapping[str, str]) -> None:
        parsed = TimestampRouterConfig.parse(config)
        self._format = parsed.topic_format
        self._pattern = tokens(parsed.timestamp_format)
        self._unchanging = unchanging_millis(self._pattern)

    def apply(self, record: SourceRecord) -> SourceRecord:
        if record.timestamp is None:
            raise _without_timestamp(record.topic)
        return dataclasses.replace(record, topic=self._topic(record.topic, record.timestamp))

    def apply_batch(self, batch: SourceBatch) -> Sequence[SourceBatch]:
        """Batches of consecutive rows with one topic."""
        stamps = batch.timestamps
        if stamps is None or (not isinstance(stamps, int) and stamps.null_count):
            raise _without_timestamp(batch.topic)
        if isinstance(stamps, int):
            return [dataclasses.replace(batch, topic=self._topic(batch.topic, stamps))]
        millis = stamps.to_numpy()
        spans = ((millis[start], start) for start, _ in runs(millis // self._unchanging))
        topics = [(self._topic(batch.topic, int(first)), start) for first, start in spans]
        return _cut(batch, topics)

    def _topic(self, topic: str, millis: int) -> str:
        named = self._format.replace("${topic}", topic)
        return named.replace("${timestamp}", formatted(self._pattern, millis))


def _cut(batch: SourceBatch, topics: Sequence[tuple[str, int]]) -> list[SourceBatch]:
    """*batch*, divided where the topic of its rows, in *topics*, changes."""
    firsts = [next(same) for _, same in itertools.groupby(topics, lambda each: each[0])]
    ends = [*(start for _, start in firsts[1:]), len(batch)]
    return [
        dataclasses.replace(batch.slice(start, end - start), topic=topic)
        for (topic, start), end in zip(firsts, ends, strict=True)
    ]


def _without_timestamp(topic: str) -> RecordError:
    return RecordError(f"Timestamp missing on record: of the topic {topic}")
