"""Answers to Fetch requests, versions 4 to 17, whose record batches stay where they were received.

kafka-python's class copies each partition's record batches; the test compares this one's fields with that one's.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Final, NamedTuple, TypeVar
from uuid import UUID

from headrace.kafka.wire.connection import uvarint

VERSIONS: Final = (4, 17)
"""Version 4 has the format of record batches with transactions (Kafka 0.11); version 18 is for followers."""
WITH_TOPIC_IDS: Final = 13
"""From this version on topics are named by their ids (KIP-516)."""
_FLEXIBLE: Final = 12

_INT16: Final = struct.Struct(">h")
_INT32: Final = struct.Struct(">i")
_INT64: Final = struct.Struct(">q")
_PARTITION: Final = struct.Struct(">ihqq")
_ABORTED: Final = struct.Struct(">qq")

_Each = TypeVar("_Each")


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
    """Reads fields one after the other."""

    def __init__(self, body: memoryview, version: int) -> None:
        self._body = body
        self._version = version
        self._is_flexible = version >= _FLEXIBLE
        self._at = 0

    def answer(self) -> FetchAnswer:
        throttle_ms = self._number(_INT32)
        error_code = 0
        if self._version >= 7:  # noqa: PLR2004 (fetch sessions)
            error_code = self._number(_INT16)
            self._skip(_INT32.size)
        topics = self._array(self._topic)
        self._skip_tags()
        return FetchAnswer(throttle_ms, error_code, [each for topic in topics for each in topic])

    def _topic(self) -> list[PartitionAnswer]:
        topic = self._topic_id() if self._version >= WITH_TOPIC_IDS else self._text()
        found = self._array(lambda: self._partition(topic))
        self._skip_tags()
        return found

    def _partition(self, topic: str | UUID) -> PartitionAnswer:
        number, error_code, high_watermark, stable = _PARTITION.unpack_from(self._body, self._at)
        self._at += _PARTITION.size
        log_start = self._number(_INT64) if self._version >= 5 else -1  # noqa: PLR2004
        aborted = self._array(self._aborted)
        replica = self._number(_INT32) if self._version >= 11 else -1  # noqa: PLR2004
        records = self._bytes()
        self._skip_tags()
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
        producer_id, first_offset = _ABORTED.unpack_from(self._body, self._at)
        self._at += _ABORTED.size
        self._skip_tags()
        return producer_id, first_offset

    def _array(self, read: Callable[[], _Each]) -> list[_Each]:
        """An array; ``null`` is read as one without elements."""
        return [read() for _ in range(self._length(_INT32))]

    def _text(self) -> str:
        return str(self._taken(self._length(_INT16)), "utf-8")

    def _topic_id(self) -> UUID:
        return UUID(bytes=bytes(self._taken(16)))

    def _bytes(self) -> memoryview:
        return self._taken(self._length(_INT32))

    def _length(self, fixed: struct.Struct) -> int:
        """The length of what follows, 0 for ``null``; it is of the type *fixed* before flexible versions."""
        if not self._is_flexible:
            return max(0, self._number(fixed))
        length, self._at = uvarint(self._body, self._at)
        return max(0, length - 1)

    def _number(self, fixed: struct.Struct) -> int:
        (found,) = fixed.unpack_from(self._body, self._at)
        self._at += fixed.size
        return found

    def _taken(self, length: int) -> memoryview:
        begin = self._at
        self._skip(length)
        return self._body[begin : self._at]

    def _skip(self, length: int) -> None:
        self._at += length
        if self._at > len(self._body):
            raise ValueError("it is shorter than it says")

    def _skip_tags(self) -> None:
        if not self._is_flexible:
            return
        fields, self._at = uvarint(self._body, self._at)
        for _ in range(fields):
            _, self._at = uvarint(self._body, self._at)
            length, self._at = uvarint(self._body, self._at)
            self._skip(length)
