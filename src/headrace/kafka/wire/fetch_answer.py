"""Answers to Fetch requests, versions 4 to 17, whose record batches stay where they were received.

kafka-python's class copies each partition's record batches; the test compares this one's fields with that one's.
"""

from __future__ import annotations

import struct
from typing import Final, NamedTuple
from uuid import UUID

from headrace.kafka.wire.fields import INT16, INT32, INT64, FieldReader

VERSIONS: Final = (4, 17)
"""Version 4 has the format of record batches with transactions (Kafka 0.11); version 18 is for followers."""
WITH_TOPIC_IDS: Final = 13
"""From this version on topics are named by their ids (KIP-516)."""
_FLEXIBLE: Final = 12

_PARTITION: Final = struct.Struct(">ihqq")
_ABORTED: Final = struct.Struct(">qq")


class PartitionAnswer(NamedTuple):
    """One partition's part; *topic* is an id from version 13 on.

    *aborted* are producer ids and first offsets. *preferred_replica* is a node id to fetch from instead, or -1 (KIP-392).
    """

    topic: str | UUID
    partition: int
    error_code: int
    high_watermark: int
    last_stable_offset: int
    log_start_offset: int
    aborted: list[tuple[int, int]]
    preferred_replica: int
    records: memoryview


class FetchAnswer(NamedTuple):
    """A whole answer; *error_code* concerns all partitions."""

    throttle_ms: int
    error_code: int
    partitions: list[PartitionAnswer]


def fetch_answer(body: memoryview, version: int) -> FetchAnswer:
    """The answer in *body*; raises ``ConnectionError`` for bytes that are none."""
    try:
        return _Reader(body, version).answer()
    except (ValueError, IndexError, struct.error) as error:
        raise ConnectionError(f"the broker's answer to Fetch cannot be read ({error})") from error


class _Reader:
    """Reads an answer's parts one after the other."""

    def __init__(self, body: memoryview, version: int) -> None:
        self._version = version
        self._fields = FieldReader(body, is_flexible=version >= _FLEXIBLE)

    def answer(self) -> FetchAnswer:
        fields = self._fields
        throttle_ms = fields.number(INT32)
        error_code = 0
        if self._version >= 7:  # noqa: PLR2004 (fetch sessions)
            error_code = fields.number(INT16)
            fields.skip(INT32.size)
        topics = fields.array(self._topic)
        fields.skip_tags()
        return FetchAnswer(throttle_ms, error_code, [each for topic in topics for each in topic])

    def _topic(self) -> list[PartitionAnswer]:
        fields = self._fields
        topic = (
            UUID(bytes=bytes(fields.taken(16)))
            if self._version >= WITH_TOPIC_IDS
            else fields.text()
        )
        found = fields.array(lambda: self._partition(topic))
        fields.skip_tags()
        return found

    def _partition(self, topic: str | UUID) -> PartitionAnswer:
        fields = self._fields
        number, error_code, high_watermark, stable = _PARTITION.unpack_from(fields.body, fields.at)
        fields.skip(_PARTITION.size)
        log_start = fields.number(INT64) if self._version >= 5 else -1  # noqa: PLR2004
        aborted = fields.array(self._aborted)
        replica = fields.number(INT32) if self._version >= 11 else -1  # noqa: PLR2004
        records = fields.octets()
        fields.skip_tags()
        return PartitionAnswer(
            topic,
            number,
            error_code,
            high_watermark,
            stable,
            log_start,
            aborted,
            replica,
            records,
        )

    def _aborted(self) -> tuple[int, int]:
        fields = self._fields
        producer_id, first_offset = _ABORTED.unpack_from(fields.body, fields.at)
        fields.skip(_ABORTED.size)
        fields.skip_tags()
        return producer_id, first_offset
