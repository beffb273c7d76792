"""The batches of one partition that a producer has not seen acknowledged, and in what order they are sent, also again."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import Final

from headrace.kafka.batches.producer_batch import UnstampedBatch
from headrace.kafka.topic_partition import TopicPartition

_FIRST_PAUSE: Final = 0.005
_LONGEST_PAUSE: Final = 1.0
NO_SEQUENCE: Final = -1


@dataclass(slots=True, eq=False, weakref_slot=True)
class ProducerBatch:
    """A batch that was handed over at *since*, by the producer's clock; *number* identifies it.

    *sequence* is given to it when it is first sent, and stays the same when it is sent again.
    """

    number: int
    place: TopicPartition
    batch: UnstampedBatch
    nbytes: int
    since: float
    sequence: int = NO_SEQUENCE


class PartitionQueue:
    """Decides which batch of a partition is sent next. Pure.

    A broker takes a partition's batches in the order of their sequences only. So when one has to be sent again, all that
    were in flight behind it are answered first, and those that were not taken go again before anything newer. At most
    *most_in_flight* are in flight, on one connection: the broker recognises no more as sent again. The first batch goes alone: of
    a producer that it does not know, a broker takes any sequence, so also the second one when it has refused the first.

    *leader* is a broker's id, or ``None`` while it is not known. *has_failed* says that the metadata which named the leader
    is out of date. *missing_since* is when a broker first said that the partition is not there, by the producer's clock.
    """

    def __init__(self, place: TopicPartition, *, most_in_flight: int) -> None:
        self.place = place
        self.leader: int | None = None
        self.has_failed = False
        self.missing_since: float | None = None
        self.pause_until = 0.0
        self._pause = _FIRST_PAUSE
        self._most = most_in_flight
        self._is_known = False
        self._waiting = deque[ProducerBatch]()
        self._in_flight = deque[ProducerBatch]()
        self._again: list[ProducerBatch] = []
        self._refused: ProducerBatch | None = None

    def add(self, batch: ProducerBatch) -> None:
        """*batch* is to be sent behind all others."""
        self._waiting.append(batch)

    @property
    def next(self) -> ProducerBatch | None:
        """The batch to send now, ``None`` while there is none that may be sent."""
        if not self._waiting or self._again or self._refused is not None:
            return None
        most = self._most if self._is_known else 1
        return None if len(self._in_flight) >= most else self._waiting[0]

    @property
    def has_more(self) -> bool:
        """Whether further batches wait behind the next one."""
        return len(self._waiting) > 1

    @property
    def has_waiting(self) -> bool:
        """Whether batches are to be sent."""
        return bool(self._waiting)

    @property
    def is_empty(self) -> bool:
        """Whether every batch was acknowledged or dropped."""
        return not (self._waiting or self._in_flight or self._again or self._refused)

    @property
    def is_in_flight(self) -> bool:
        """Whether a batch was sent and not answered."""
        return bool(self._in_flight)

    @property
    def oldest(self) -> ProducerBatch | None:
        """The first batch that was not acknowledged."""
        for held in (self._again, self._in_flight, self._waiting):
            if held:
                return held[0]
        return None

    def sent(self) -> ProducerBatch:
        """The next batch is sent now; returns it."""
        batch = self._waiting.popleft()
        self._in_flight.append(batch)
        return batch

    def accepted(self, batch: ProducerBatch) -> None:
        """The broker has *batch*."""
        self._in_flight.remove(batch)
        self._is_known = True
        self._pause, self.missing_since = _FIRST_PAUSE, None
        self._settle()

    def has_earlier(self, batch: ProducerBatch) -> bool:
        """Whether a batch before *batch* was not taken, so that the broker cannot take *batch* either."""
        refused = [] if self._refused is None else [self._refused]
        return any(each.number < batch.number for each in (*refused, *self._again))

    def again(self, batch: ProducerBatch) -> None:
        """*batch* was not taken, or it is not known whether it was: it is sent again."""
        self._in_flight.remove(batch)
        self._again.append(batch)
        self._settle()

    def wait(self, now: float) -> None:
        """Send nothing for a while, which gets longer until a batch is accepted."""
        self.pause_until = now + self._pause
        self._pause = min(2 * self._pause, _LONGEST_PAUSE)

    def refuse(self, batch: ProducerBatch) -> None:
        """The broker will never take *batch*. Nothing behind it is sent until it is dropped, by ``drop`` or ``clear``."""
        self._in_flight.remove(batch)
        self._refused = batch
        self._settle()

    @property
    def refused(self) -> ProducerBatch | None:
        """The batch that was refused and not dropped."""
        return self._refused

    def drop(self) -> ProducerBatch:
        """Go on without the refused batch, which is returned; those behind it get its sequence.

        Nothing may be in flight.
        """
        dropped = self._refused
        if dropped is None or self._in_flight:
            raise ValueError(f"{self.place} has no refused batch, or batches in flight")
        self._refused = None
        for each in self._waiting:
            each.sequence = NO_SEQUENCE
        return dropped

    def reenqueue(self, batch: ProducerBatch) -> None:
        """Send *batch* before all others, in the place of one that was just dropped."""
        self._waiting.appendleft(batch)

    def clear(self) -> list[ProducerBatch]:
        """Forget all but what is in flight; returns what was to be sent, or sent again, and what was refused."""
        refused = [] if self._refused is None else [self._refused]
        cleared = [*refused, *self._again, *self._waiting]
        self._waiting.clear()
        self._again.clear()
        self._refused = None
        return cleared

    def _settle(self) -> None:
        """With the last answer, what is to be sent again goes before what waits."""
        if not self._in_flight and self._again:
            self._again.sort(key=_number)
            self._waiting.extendleft(reversed(self._again))
            self._again.clear()


def _number(batch: ProducerBatch) -> int:
    return batch.number
