"""The bytes of the enumerator's state: ours, and versions 0 to 3 of Flink's Kafka source.

The version number is stored outside of the bytes, as in Flink. Ours are written; Flink's are read only.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from typing import Final

from headrace.discovery.state import (
    VERSION,
    EnumeratorState,
    Kind,
    PartitionState,
    Status,
    unreadable,
)
from headrace.kafka.topic_partition import TopicPartition

# Flink's marks in place of an offset: unknown in an older state as a start, none as a stop.
_MIGRATED = _NO_STOP = -(2**63)
_FLINK_EARLIEST: Final = -2
_FLINK_STATUS: Final = {0: Status.ASSIGNED, 1: Status.UNASSIGNED}
_SPLIT_VERSION: Final = 0
# They were written when every partition counted as known after a restart.
_WITHOUT_FLAG: Final = (0, 1)

Entry = tuple[TopicPartition, PartitionState]


def to_bytes(state: EnumeratorState) -> bytes:
    """*state* in the bytes of ``VERSION``: its JSON, compressed."""
    return zlib.compress(state.to_json().encode())


def from_bytes(version: int, data: bytes) -> EnumeratorState:
    """The state whose bytes of *version* are *data*.

    Of Flink's states the assigned partitions keep what they were handed out with, which is no progress; an unassigned one
    whose offset Flink has not resolved is resolved at the next discovery, as what it was found as.

    Raises :class:`~headrace.connect.errors.TaskFailedError` for a version that is not known, bytes that are left over or
    missing, and a status that there is not.
    """
    if version == VERSION:
        return _own(data)
    if version not in _FLINK:
        raise unreadable(
            f"its version is {version}, and this headrace reads its own, {VERSION}, and 0 to 3 of Flink's Kafka source"
        )
    try:
        return _from_flink(version, _Reader(data))
    except (struct.error, UnicodeDecodeError):
        raise unreadable(f"its bytes of version {version} end too early or are damaged") from None


def _own(data: bytes) -> EnumeratorState:
    reader = zlib.decompressobj()
    try:
        text = reader.decompress(data).decode()
    except (zlib.error, UnicodeDecodeError) as error:
        raise unreadable(f"its bytes are damaged ({error})") from None
    if not reader.eof:
        raise unreadable("its bytes end too early")
    if reader.unused_data:
        raise unreadable(f"{len(reader.unused_data)} bytes are left over behind it")
    return EnumeratorState.from_json(text)


class _Reader:
    """Reads big-endian numbers and texts, one after the other."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def number(self, form: str = ">i") -> int:
        (value,) = struct.unpack_from(form, self._data, self._at)
        self._at += struct.calcsize(form)
        return value

    def text(self) -> str:
        length = self.number(">H")
        (raw,) = struct.unpack_from(f"{length}s", self._data, self._at)
        self._at += length
        return raw.decode()

    def taken(self, length: int) -> _Reader:
        """A reader of the next *length* bytes."""
        (raw,) = struct.unpack_from(f"{length}s", self._data, self._at)
        self._at += length
        return _Reader(raw)

    @property
    def left(self) -> int:
        return len(self._data) - self._at


def _from_flink(version: int, reader: _Reader) -> EnumeratorState:
    partitions = dict(_FLINK[version](reader))
    finished = version in _WITHOUT_FLAG or reader.number(">b") != 0
    if reader.left:
        raise unreadable(f"{reader.left} bytes are left over behind its version {version}")
    return EnumeratorState(partitions=partitions, initial_discovery_finished=finished)


def _version_0(reader: _Reader) -> Iterator[Entry]:
    subtasks, split_version = reader.number(), reader.number()
    _check_split_version(split_version)
    for _ in range(subtasks):
        reader.number()
        for _ in range(reader.number()):
            yield _split(reader.taken(reader.number()), Status.ASSIGNED)


def _version_1(reader: _Reader) -> Iterator[Entry]:
    for _ in range(reader.number()):
        yield _entry(_place(reader), Status.ASSIGNED)


def _version_2(reader: _Reader) -> Iterator[Entry]:
    for _ in range(reader.number()):
        place = _place(reader)
        yield _entry(place, _status(reader.number()))


def _version_3(reader: _Reader) -> Iterator[Entry]:
    count, split_version = reader.number(), reader.number()
    _check_split_version(split_version)
    for _ in range(count):
        split = reader.taken(reader.number())
        yield _split(split, _status(reader.number()))


_FLINK: Final = {0: _version_0, 1: _version_1, 2: _version_2, 3: _version_3}


def _split(reader: _Reader, status: Status) -> Entry:
    place = _place(reader)
    start, stop = reader.number(">q"), reader.number(">q")
    if reader.left:
        raise unreadable(f"{reader.left} bytes are left over behind the split of {place}")
    return _entry(place, status, start=start, stop=stop)


def _place(reader: _Reader) -> TopicPartition:
    topic = reader.text()
    return TopicPartition(topic, reader.number())


def _entry(
    place: TopicPartition, status: Status, start: int = _MIGRATED, stop: int = _NO_STOP
) -> Entry:
    if stop < 0 and stop != _NO_STOP:
        raise unreadable(f"{place} stops at {stop}, which only Flink's reader turns into an offset")
    known_stop = None if stop == _NO_STOP else stop
    if start >= 0:
        return place, PartitionState(status, start, known_stop)
    if status is Status.ASSIGNED:
        # Only the reader knows where it is: nothing may be resolved in place of that.
        return place, PartitionState(status, None, known_stop)
    # What Flink calls earliest may be an initial partition: its log need not begin at 0.
    kind = Kind.NEW if start == _FLINK_EARLIEST else Kind.INITIAL
    return place, PartitionState(status, kind=kind)


def _status(code: int) -> Status:
    if code not in _FLINK_STATUS:
        raise unreadable(f"a partition has the status {code}, and there are only 0 and 1")
    return _FLINK_STATUS[code]


def _check_split_version(version: int) -> None:
    if version != _SPLIT_VERSION:
        raise unreadable(f"its splits are of version {version}, and only {_SPLIT_VERSION} is known")
