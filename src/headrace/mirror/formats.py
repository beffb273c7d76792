"""The bytes of the mirror's own records: MirrorMaker's heartbeats, checkpoints and offset syncs, and offset ranges.

All numbers are big-endian; a text is its length in two bytes and UTF-8. Values begin with a version, those of offset syncs
aside. Reading raises ``ValueError`` with a sentence for bytes that are something else; bytes after the last field are
ignored, as Kafka's own structures do.
"""

from __future__ import annotations

import struct
from typing import Final, NamedTuple, Self

from headrace.kafka.topic_partition import TopicPartition

_VERSION: Final = 0
_SHORT: Final = struct.Struct(">h")
_INT: Final = struct.Struct(">i")
_LONG: Final = struct.Struct(">q")
_LONGEST_TEXT: Final = 2**15 - 1


class RecordBytes(NamedTuple):
    """The key and the value of a record."""

    key: bytes
    value: bytes


class Heartbeat(NamedTuple):
    """That the flow from *source* to *target* was alive at *timestamp_ms*, milliseconds since 1970."""

    source: str
    target: str
    timestamp_ms: int

    def encoded(self) -> RecordBytes:
        """The record, for partition 0 of the topic of heartbeats."""
        key = _text(self.source) + _text(self.target)
        return RecordBytes(key, _SHORT.pack(_VERSION) + _LONG.pack(self.timestamp_ms))

    @classmethod
    def decoded(cls, key: bytes, value: bytes) -> Self:
        """What a record says; raises ``ValueError``."""
        keys, values = _Reader(key, "key of a heartbeat"), _Reader(value, "value of a heartbeat")
        values.version()
        return cls(keys.text(), keys.text(), values.long())


class Checkpoint(NamedTuple):
    """That a *group* that would read next at *upstream* on the source would read next at *downstream* on the target.

    *topic* is the remote topic, or the original one if the group's topic had itself come from the target.
    """

    group: str
    topic: str
    partition: int
    upstream: int
    downstream: int
    metadata: str = ""

    def encoded(self) -> RecordBytes:
        """The record, for partition 0 of the topic of checkpoints."""
        key = _text(self.group) + _text(self.topic) + _INT.pack(self.partition)
        value = _SHORT.pack(_VERSION) + _LONG.pack(self.upstream) + _LONG.pack(self.downstream)
        return RecordBytes(key, value + _text(self.metadata))

    @classmethod
    def decoded(cls, key: bytes, value: bytes) -> Self:
        """What a record says; raises ``ValueError``."""
        keys, values = _Reader(key, "key of a checkpoint"), _Reader(value, "value of a checkpoint")
        values.version()
        of_key = keys.text(), keys.text(), keys.int()
        return cls(*of_key, values.long(), values.long(), values.text())


class OffsetSync(NamedTuple):
    """That the record at *upstream* of a partition of the source's *topic* is at *downstream* of its remote partition."""

    topic: str
    partition: int
    upstream: int
    downstream: int

    def encoded(self) -> RecordBytes:
        """The record, for partition 0 of the topic of offset syncs."""
        value = _LONG.pack(self.upstream) + _LONG.pack(self.downstream)
        return RecordBytes(_text(self.topic) + _INT.pack(self.partition), value)

    @classmethod
    def decoded(cls, key: bytes, value: bytes) -> Self:
        """What a record says; raises ``ValueError``."""
        keys = _Reader(key, "key of an offset sync")
        values = _Reader(value, "value of an offset sync")
        return cls(keys.text(), keys.int(), values.long(), values.long())


class OffsetRange(NamedTuple):
    """That *records* records from *upstream* on, without a gap, are at *downstream* and after it of the remote partition.

    *topic* and *partition* are the source's.
    """

    topic: str
    partition: int
    upstream: int
    downstream: int
    records: int

    @property
    def upstream_end(self) -> int:
        """The source offset after the last record."""
        return self.upstream + self.records

    @property
    def downstream_end(self) -> int:
        """The target offset after the last record."""
        return self.downstream + self.records

    def encoded(self) -> RecordBytes:
        """The record, for the topic of offset ranges."""
        value = b"".join(map(_LONG.pack, (self.upstream, self.downstream, self.records)))
        return RecordBytes(
            _text(self.topic) + _INT.pack(self.partition), _SHORT.pack(_VERSION) + value
        )

    @classmethod
    def decoded(cls, key: bytes, value: bytes) -> Self:
        """What a record says; raises ``ValueError``."""
        values = _Reader(value, "value of an offset range")
        values.version()
        found = cls(*cls.place_of(key), values.long(), values.long(), values.long())
        if found.upstream < 0 or found.downstream < 0 or found.records < 1:
            raise ValueError(f"{found} is no range of offsets.")
        return found

    @staticmethod
    def topic_of(key: bytes) -> str:
        """The topic that a record with this *key* is about; raises ``ValueError``."""
        return OffsetRange.place_of(key).topic

    @staticmethod
    def place_of(key: bytes) -> TopicPartition:
        """The partition that a record with this *key* is about; raises ``ValueError``."""
        keys = _Reader(key, "key of an offset range")
        return TopicPartition(keys.text(), keys.int())


class _Reader:
    """Reads the fields of one key or value, one after the other."""

    def __init__(self, content: bytes, what: str) -> None:
        self._content = content
        self._what = what
        self._place = 0

    def text(self) -> str:
        length = self._number(_SHORT)
        if length < 0:
            raise ValueError(f"The {self._what} has a text of {length} bytes.")
        try:
            return self._bytes(length).decode()
        except UnicodeDecodeError as error:
            raise ValueError(f"The {self._what} has a text that is not UTF-8: {error}.") from None

    def int(self) -> int:
        return self._number(_INT)

    def long(self) -> int:
        return self._number(_LONG)

    def version(self) -> None:
        """Refuse another version than the one there is."""
        version = self._number(_SHORT)
        if version != _VERSION:
            raise ValueError(
                f"The {self._what} has version {version}, and only {_VERSION} is known: it was written by a newer mirror."
            )

    def _number(self, form: struct.Struct) -> int:
        [number] = form.unpack(self._bytes(form.size))
        return number

    def _bytes(self, length: int) -> bytes:
        found = self._content[self._place : self._place + length]
        if len(found) < length:
            raise ValueError(
                f"The {self._what} ends after {len(self._content)} bytes, in the middle of a field."
            )
        self._place += length
        return found


def _text(text: str) -> bytes:
    written = text.encode()
    if len(written) > _LONGEST_TEXT:
        raise ValueError(f"{text[:40]}… has {len(written)} bytes; at most {_LONGEST_TEXT} fit.")
    return _SHORT.pack(len(written)) + written
