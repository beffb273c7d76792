"""A record batch that contradicts itself, and a record that its target cannot take."""

from __future__ import annotations

from headrace.connect.encoded import EncodedBatches
from headrace.connect.errors import TaskFailedError
from headrace.kafka.topic_partition import TopicPartition


class CorruptBatchError(TaskFailedError):
    """A record batch is damaged, or not one that Kafka's protocol allows; no record from where that shows is handed out.

    *place* is the partition, *offset* the base offset of the batch, or -1 when not even that can be read;
    *reason* what contradicts what.
    """

    def __init__(self, place: TopicPartition, offset: int, reason: str) -> None:
        self.place = place
        self.offset = offset
        self.reason = reason
        where = f"at offset {offset}" if offset >= 0 else "at an unknown offset"
        super().__init__(
            f"The record batch {where} of partition {place} is corrupt: {reason}. "
            f"Compare with another replica, or start reading after this batch."
        )


class DamagedBatchError(CorruptBatchError):
    """One of several encoded batches is damaged. All *before* it is handed over: so many *records*.

    *before* is ``None`` where there is nothing. Up to the source offset *last* the batch reaches, as it says itself.
    """

    def __init__(
        self,
        damage: CorruptBatchError,
        *,
        before: EncodedBatches | None,
        records: int,
        last: int,
    ) -> None:
        super().__init__(damage.place, damage.offset, damage.reason)
        self.before = before
        self.records = records
        self.last = last


class UnforwardableError(TaskFailedError):
    """A record cannot be written where it is to go to, or one of several.

    *place* is the partition that it comes from, *offset* its offset there, and *last* that of the last record that may be the
    one; *reason* and *advice* are the parts of the message.
    """

    def __init__(
        self,
        place: TopicPartition,
        offset: int,
        reason: str,
        *,
        advice: str,
        last: int | None = None,
    ) -> None:
        self.place = place
        self.offset = offset
        self.last = offset if last is None else last
        self.reason = reason
        self.advice = advice
        which = (
            f"record at offset {offset}"
            if self.last == offset
            else f"records at the offsets {offset} to {self.last}"
        )
        super().__init__(f"The {which} of {place} cannot be copied: {reason}. {advice}".strip())
