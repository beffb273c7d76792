"""Single records: what a task may return, their metadata after the commit, and records that cannot be read or sent."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from numbers import Integral
from typing import NamedTuple

from headrace.connect.partition import OffsetValue, SourceOffset, SourcePartition, as_partition
from headrace.connect.schema import Schema


@dataclass(frozen=True, slots=True)
class Header:
    """One header of a record; several may have the same key, and their order is kept."""

    key: str
    value: object = None
    schema: Schema | None = None


Headers = tuple[Header, ...]
"""The headers of one record, in order."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceRecord:
    """One record as a task's ``poll`` may return it; the runtime makes batches of them.

    *timestamp* is in milliseconds since 1970 (UTC); ``None`` lets the producer use the time of sending.
    *partition* is the Kafka partition; ``None`` lets the partitioner choose by the key.
    A *source_offset* of ``None`` removes what is stored for the source partition. Another mapping, given as
    *source_partition*, becomes a :class:`SourcePartition`.
    """

    topic: str
    value: object
    source_partition: SourcePartition
    source_offset: SourceOffset | None
    value_schema: Schema | None = None
    key: object = None
    key_schema: Schema | None = None
    headers: Headers = field(default=())
    timestamp: int | None = None
    partition: int | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.source_partition, SourcePartition):  # pyright: ignore[reportUnnecessaryIsInstance]
            object.__setattr__(self, "source_partition", as_partition(self.source_partition))
        if self.source_offset is not None:
            # A task may keep counting in the same mapping.
            object.__setattr__(self, "source_offset", dict(self.source_offset))
        if self.timestamp is not None:
            _check_timestamp(self.timestamp)


def _check_timestamp(timestamp: int) -> None:
    if type(timestamp) is not int and not isinstance(timestamp, Integral):
        raise TypeError(f"A record's timestamp is in whole milliseconds, not {timestamp!r}.")
    # Kafka's clients use -1 for "no timestamp", and so do records made from theirs.
    if timestamp < -1:
        raise ValueError(f"Invalid record timestamp {timestamp}")


class BytesRecord(NamedTuple):
    """A record that is written as it is: neither transformations nor converters see it."""

    topic: str
    partition: int
    key: bytes | None
    value: bytes | None


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordMetadata:
    """Where a committed record is in Kafka."""

    topic: str
    partition: int
    offset: int
    timestamp: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class BadRecord:
    """The record of a :class:`~headrace.connect.errors.RecordError`; ``errors.tolerance=all`` needs it (KIP-298).

    *source_offset* points after the record, as that of every record does. *raw* is the record as it was
    read, ``None`` where its bytes are not available; *reference* says where they are, as JSON values, such as an
    object's name, its version and a range of bytes. *topic* is where the record would have been sent.
    *quarantines* says that it stands for the whole rest of its object, which will not be read according to the
    offset.
    """

    source_partition: SourcePartition
    source_offset: SourceOffset | None
    topic: str | None = None
    raw: bytes | None = field(default=None, repr=False)
    reference: Mapping[str, OffsetValue] = field(default_factory=dict[str, OffsetValue])
    quarantines: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "source_partition", as_partition(self.source_partition))


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordSchemas:
    """The schemas of all records of a connector, as its tasks return them.

    Without a schema a value is text, or a JSON document; a key is text, or there is none.
    """

    value: Schema | None = None
    key: Schema | None = None
