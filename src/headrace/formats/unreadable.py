"""A record of an object that cannot be read, or some that cannot be told apart, while those behind can."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from headrace.connect.errors import RecordError
from headrace.connect.partition import OffsetValue, SourceOffset, SourcePartition
from headrace.connect.record import BadRecord
from headrace.formats.chunk import Resume


@dataclass(frozen=True, slots=True, kw_only=True)
class Unread:
    """A record that was passed over.

    *behind* is where a later reader would go on, *constants* what it must know besides. *raw* is the record's
    bytes, ``None`` where they cannot be had; *reference* is where they are in the object.
    """

    behind: Resume
    reference: Mapping[str, OffsetValue]
    raw: bytes | None = None
    constants: Mapping[str, OffsetValue] = field(default_factory=dict[str, OffsetValue])


class UnreadableRecordError(RecordError):
    """Raised by an ``ObjectReader`` once for such a *record*; its next chunk begins behind it."""

    def __init__(
        self,
        reason: str,
        *,
        native_key: str,
        position: str,
        record: Unread,
        advice: str | None = None,
    ) -> None:
        super().__init__(reason, native_key=native_key, position=position, advice=advice)
        self.record = record

    def with_offset(
        self,
        partition: SourcePartition,
        offset: SourceOffset,
        *,
        topic: str | None,
        version: OffsetValue = None,
    ) -> RecordError:
        """The error as a task raises it: *offset* says what ``record.behind`` does, as the task's offsets say it."""
        known = {"object": self.native_key, "version": version}
        where = {key: value for key, value in known.items() if value is not None}
        bad = BadRecord(
            source_partition=partition,
            source_offset=offset,
            topic=topic,
            raw=self.record.raw,
            reference={**where, **self.record.reference},
        )
        return RecordError(
            self.reason,
            native_key=self.native_key,
            position=self.position,
            advice=self.advice,
            bad=bad,
        )
