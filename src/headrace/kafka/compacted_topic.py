"""A compacted topic, read from its beginning and then followed."""

from __future__ import annotations

import logging
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final
from uuid import UUID

from headrace.connect.errors import ConnectError, RetriableError, TaskFailedError
from headrace.kafka.batches.decoding import decoded
from headrace.kafka.client_config import ClientConfig
from headrace.kafka.deadline import Deadline
from headrace.kafka.topic_partition import TopicPartition
from headrace.kafka.wire.cluster import (
    EARLIEST,
    LATEST,
    Cluster,
    IsolationLevel,
    TopicMetadata,
)
from headrace.kafka.wire.error_codes import UNKNOWN_TOPIC_OR_PARTITION, ErrorCode, Reaction
from headrace.kafka.wire.fetcher import LOST, FetchedRecords, Fetcher, FetchRange, FetchSettings
from headrace.kafka.wire.settings import wire_settings

_LOG = logging.getLogger(__name__)
_STEP_SECONDS: Final = 0.25
# A broker that reports an end delivers what is before it well within this.
_PATIENCE_SECONDS: Final = 3.0
# For a connection that was lost, while a topic is only followed.
_CONNECT_SECONDS: Final = 0.5
# How long a broker keeps a request for which it has nothing: a topic that is only followed costs one in this time.
_WAIT_MS: Final = 5_000


@dataclass(frozen=True, slots=True, kw_only=True)
class LogRecord:
    """A committed record; *timestamp* is in milliseconds."""

    partition: int
    offset: int
    key: bytes | None
    value: bytes | None
    timestamp: int


class CompactedLog:
    """Follows *topic* and hands every committed record to *on_record*, per partition in order; with *uncommitted*, the others, too.

    If nothing arrives although the broker has more, as after a long freeze of the broker, the connections are replaced, and reading
    resumes at the same offsets. One thread owns it. Partitions that the topic gains are read from their
    beginning. *on_record* runs inside ``read_to_end`` and ``take_arrived``. *when_late* is a sentence of advice for when the end is
    not reached in time. Raises :class:`~headrace.connect.errors.ConfigError` for settings that cannot be used.
    """

    def __init__(
        self,
        topic: str,
        config: ClientConfig,
        *,
        on_record: Callable[[LogRecord], None],
        when_late: str = "",
        uncommitted: bool = False,
        fetcher: Callable[[Cluster, list[FetchRange], FetchSettings], Fetcher] = Fetcher,
    ) -> None:
        self._topic = topic
        self._on_record = on_record
        self._when_late = when_late
        self._reached: dict[int, int] = {}
        self._topic_id: UUID | None = None
        self._cluster = Cluster(wire_settings(config.settings))
        self._settings = FetchSettings(
            isolation=IsolationLevel.READ_UNCOMMITTED
            if uncommitted
            else IsolationLevel.READ_COMMITTED,
            max_wait_ms=_WAIT_MS,
        )
        self._make = fetcher
        self._fetcher: Fetcher | None = None

    @property
    def partitions(self) -> int:
        """How many partitions the topic had when its end was last asked for."""
        return len(self._reached)

    def read_to_end(self, deadline: Deadline) -> None:
        """Return when everything committed before this call has been handed over.

        The end is that of the whole log, open transactions included: the end that a ``read_committed``
        reader gets is before the first of these, and may hide records committed after it. Raises
        :class:`~headrace.connect.errors.RetriableError` naming the topic when that end is not reached
        before *deadline*: usually another producer's transaction is open in the topic. The next call then
        reads over new connections.
        """
        ends = self._ends(deadline)
        self._follow(ends, deadline)
        self._connected()
        patience = _PATIENCE_SECONDS
        quiet = Deadline.after(patience, deadline.clock)
        while behind := self._behind(ends):
            if deadline.expired:
                self._disconnect()
                raise self._late(behind, ends)
            reached = dict(self._reached)
            self._take(self._connected(), deadline)
            if reached != self._reached:
                quiet = Deadline.after(patience, deadline.clock)
            elif quiet.expired:
                _LOG.info(
                    "No record of topic %r arrived for %.0f s, although its end was not reached; the connections are replaced.",
                    self._topic,
                    patience,
                )
                self._disconnect()
                # The cause may be an open transaction, past which no one can read.
                patience *= 2
                quiet = Deadline.after(patience, deadline.clock)

    def take_arrived(self) -> None:
        """Hand over what has been received by now, almost without waiting; nothing before the first ``read_to_end``.

        A broker that is away is no error before the next ``read_to_end``. Raises what that raises for a topic that is not the one that
        was read before.
        """
        if self._reached:
            share = Deadline.after(_CONNECT_SECONDS)
            fetcher = self._connected()
            while self._take(fetcher, Deadline.after(0) if fetcher.is_settled else share):
                pass

    @property
    def descriptor(self) -> int | None:
        """What is readable when there is something for ``take_arrived``: a file descriptor, until the connections are replaced."""
        fetcher = self._fetcher
        try:
            return None if fetcher is None else fetcher.fileno()
        except ValueError:
            # The thread that reads has closed it since: the one that waits is another one.
            return None

    def close(self) -> None:
        """Release the connections."""
        self._disconnect()
        self._cluster.close()

    def _ends(self, deadline: Deadline) -> dict[int, int]:
        """The end of each partition; finds out whether the topic is still the one that was read before."""
        found = self._described(deadline)
        if found.error == UNKNOWN_TOPIC_OR_PARTITION:
            # Brokers learn of a topic one after the other.
            found = self._described(deadline, again=True)
        if found.error is not None:
            raise self._refused("is not there for this client", found.error)
        if self._topic_id not in (None, found.topic_id):
            raise self._recreated("it has another id")
        self._topic_id = found.topic_id
        return self._offsets(LATEST, found.partitions, deadline)

    def _described(self, deadline: Deadline, *, again: bool = False) -> TopicMetadata:
        with self._end_is_unknown():
            return self._cluster.metadata([self._topic], deadline, again=again).topics[self._topic]

    def _offsets(self, which: int, partitions: Iterable[int], deadline: Deadline) -> dict[int, int]:
        """The first offset of each of *partitions*, or the one after its last, open transactions included."""
        wanted = {TopicPartition(self._topic, each): which for each in partitions}
        with self._end_is_unknown():
            found = self._cluster.list_offsets(
                wanted, deadline, isolation=IsolationLevel.READ_UNCOMMITTED
            )
        offsets = dict[int, int]()
        for place, each in found.items():
            if each.error is not None:
                raise self._refused("cannot be read", each.error)
            assert each.offset is not None
            offsets[place.partition] = each.offset
        return offsets

    @contextmanager
    def _end_is_unknown(self) -> Generator[None]:
        try:
            yield
        except RetriableError as error:
            raise RetriableError(
                f"The end of topic {self._topic!r} is not known. {error}"
            ) from error

    def _refused(self, what: str, error: ErrorCode) -> ConnectError:
        advice = error.advice
        if error == UNKNOWN_TOPIC_OR_PARTITION:
            advice = "Grant this client Describe on it; if it was deleted, restore its records before you restart."
        sentence = f"Topic {self._topic!r} {what}: the brokers answer {error.name}. {advice}"
        is_final = error.reaction is Reaction.FAIL or error == UNKNOWN_TOPIC_OR_PARTITION
        return (TaskFailedError if is_final else RetriableError)(sentence.rstrip())

    def _follow(self, ends: dict[int, int], deadline: Deadline) -> None:
        added = sorted(ends.keys() - self._reached.keys())
        if added:
            self._reached.update(self._offsets(EARLIEST, added, deadline))
            if self._fetcher is not None:
                self._fetcher.add(self._ranges(added))
        for partition, end in ends.items():
            if end < self._reached[partition]:
                raise self._recreated(f"partition {partition} ends at {end}, earlier than before")

    def _ranges(self, partitions: Iterable[int]) -> list[FetchRange]:
        """*partitions*, from where they were read to."""
        return [
            FetchRange(
                place=TopicPartition(self._topic, each),
                start=self._reached[each],
                topic_id=self._topic_id,
            )
            for each in partitions
        ]

    def _connected(self) -> Fetcher:
        if self._fetcher is None:
            self._fetcher = self._make(self._cluster, self._ranges(self._reached), self._settings)
        return self._fetcher

    def _disconnect(self) -> None:
        fetcher, self._fetcher = self._fetcher, None
        if fetcher is not None:
            fetcher.close()

    def _behind(self, ends: dict[int, int]) -> list[int]:
        return [partition for partition, end in ends.items() if self._reached[partition] < end]

    def _take(self, fetcher: Fetcher, deadline: Deadline) -> bool:
        """Hand over what comes next, and return whether anything has; a record's error is raised after the others, which do not come again."""
        failures = list[ConnectError]()
        try:
            answers = fetcher.poll(
                Deadline.after(deadline.remaining(_STEP_SECONDS), deadline.clock)
            )
            for answer in answers:
                failures += self._taken(answer)
        except LOST as error:
            self._disconnect()
            raise self._recreated(str(error)) from error
        except TaskFailedError:
            # Polled again, the fetcher would leave out what cannot be read, or ask for nothing more of that partition.
            self._disconnect()
            raise
        except RetriableError as error:
            # Whether it lasts is for whoever waits for the end to say.
            _LOG.debug("Topic %r is not read now: %s", self._topic, error)
            return False
        if failures:
            raise failures[0]
        return bool(answers)

    def _taken(self, answer: FetchedRecords) -> Iterator[ConnectError]:
        """Hand over the records of *answer*, and yield what is raised for them."""
        for record in _records(answer):
            try:
                self._on_record(record)
            except ConnectError as error:
                yield error
        self._reached[answer.place.partition] = answer.next_offset

    def _late(self, behind: list[int], ends: dict[int, int]) -> RetriableError:
        places = ", ".join(f"{one} at {self._reached[one]} of {ends[one]}" for one in behind[:5])
        return RetriableError(
            f"The end of topic {self._topic!r} was not reached in time (partition {places}). "
            "The broker is slow or unreachable, or another producer has an open transaction in this topic: "
            f"kafka-transactions.sh find-hanging shows it. {self._when_late}".rstrip()
        )

    def _recreated(self, how: str) -> TaskFailedError:
        return TaskFailedError(
            f"Topic {self._topic!r} is not the one that was read before: {how.rstrip('.')}. It was deleted, perhaps created again, or "
            "truncated. Restore its records before you restart: a restart knows only what is in the topic by then."
        )


def _records(answer: FetchedRecords) -> Iterator[LogRecord]:
    """The records of *answer* in their order; raises ``CorruptBatchError`` after those before a damaged batch."""
    partition = answer.place.partition
    for batch in decoded(
        answer.data,
        answer.headers,
        place=answer.place,
        start=answer.fetch_offset,
        aborted=answer.aborted,
    ):
        columns = (batch[name].to_pylist() for name in ("offset", "key", "value", "timestamp"))
        for offset, key, value, timestamp in zip(*columns, strict=True):
            yield LogRecord(
                partition=partition, offset=offset, key=key, value=value, timestamp=timestamp
            )
