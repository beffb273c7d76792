"""One producer of the client library: collects its failures, reports its waits, logs to ``logging``."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from confluent_kafka import KafkaError, KafkaException, Producer
from confluent_kafka import Message as Delivered

from headrace.connect.errors import (
    ConnectError,
    ReplanError,
    RetriableError,
)
from headrace.kafka.client_config import ClientConfig
from headrace.kafka.client_log import CLIENT_LOG, LastClientError
from headrace.kafka.deadline import Clock, Deadline
from headrace.kafka.errors import (
    Context,
    LateRefusalError,
    advice_for,
    is_retriable,
    kafka_error,
    timed_out,
    translated,
)
from headrace.kafka.refused_settings import refused_settings


class Stall:
    """Watches a queue while its owner waits for it. *longest* is the longest time without progress, in seconds."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._length = 0
        self._moved_at = 0.0
        self.longest = 0.0

    def begin(self, length: int) -> None:
        """The owner begins to wait; *length* records are in the queue."""
        self._length, self._moved_at = length, self._clock()

    def see(self, length: int) -> None:
        """The owner still waits, or has just ended, with *length* records left."""
        now = self._clock()
        self.longest = max(self.longest, now - self._moved_at)
        if length < self._length:
            self._length, self._moved_at = length, now


Waiting = Callable[[str], None]
"""Called about once a second while a producer waits, with what it waits for. May raise to end the wait."""

_STEP_SECONDS = 1.0
# How long the automatic creation of a topic may take.
_CREATION_SECONDS = 10.0
_UNKNOWN_TOPIC = ("_UNKNOWN_TOPIC", "UNKNOWN_TOPIC_OR_PART")
_BEING_CREATED = (*_UNKNOWN_TOPIC, "LEADER_NOT_AVAILABLE")
# Delivery reports of records that were purged on purpose are not failures.
_PURGED = ("_PURGE_QUEUE", "_PURGE_INFLIGHT")
_SIZES = ("MSG_SIZE_TOO_LARGE", "RECORD_LIST_TOO_LARGE")
_OF_ONE_RECORD = frozenset(
    {"MSG_SIZE_TOO_LARGE", "RECORD_LIST_TOO_LARGE", "INVALID_RECORD", "INVALID_TIMESTAMP"}
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Undelivered:
    """A record that was handed over and not delivered; sizes are ``None`` for null."""

    error: KafkaError
    topic: str | None
    key_bytes: int | None
    value_bytes: int | None
    partition: int | None = None

    @property
    def doing(self) -> str:
        """What was refused; with the partition if that does not exist."""
        if self.error.name() != "_UNKNOWN_PARTITION":
            return "writing to"
        return f"writing to partition {self.partition} of"

    def is_less_specific_than(self, other: Undelivered) -> bool:
        """Whether *other*, which failed later, says more about why its request failed.

        A request fails as a whole, so its first record may not be the cause.
        """
        if self.error.name() == "_INVALID_DIFFERENT_RECORD":
            return other.error.name() in _OF_ONE_RECORD
        if self.error.name() not in _SIZES or other.error.name() != self.error.name():
            return False
        return self._size() < other._size()

    def refusal(self) -> LateRefusalError | None:
        """The error for this one record, or ``None`` when any other would have failed as well."""
        name = self.error.name()
        if name not in _OF_ONE_RECORD:
            return None
        return LateRefusalError(
            f"Kafka refused a record ({self._size()} B with its key) for topic {self.topic!r}: "
            f"{self.error.str().rstrip('.')} ({name}).",
            advice=advice_for(self.error),
            topic=self.topic or "",
            key_bytes=self.key_bytes,
            value_bytes=self.value_bytes,
        )

    def _size(self) -> int:
        return (self.key_bytes or 0) + (self.value_bytes or 0)


class TrackedProducer:
    """Wraps ``confluent_kafka.Producer`` (*raw*). One thread owns it; callbacks run in its calls.

    *began* is when the open transaction began by the clock, ``None`` without one; it distinguishes a
    transaction's time-out from a newer owner, which look the same to the client. *reports_all* calls
    delivery callbacks for successful records too.
    """

    def __init__(
        self,
        config: ClientConfig,
        *,
        owner: str | None = None,
        clock: Clock = time.monotonic,
        waiting: Waiting | None = None,
        reports_all: bool = False,
    ) -> None:
        self.began: float | None = None
        self._transactional_id = config.transactional_id
        self._timeout_seconds = config.transaction_timeout_seconds
        self._owner = owner
        self._clock = clock
        self._waiting = waiting
        self._undelivered: Undelivered | None = None
        self._topics = set[str]()
        self._fatal: KafkaError | None = None
        self._unsettled: str | None = None
        self._last_error = LastClientError()
        self._stall = Stall(clock)
        settings: dict[str, object] = {
            **config.settings,
            # A batch counts as delivered when the queue has drained past it without a failure.
            "delivery.report.only.error": not reports_all,
            "on_delivery": self.on_delivery,
            "error_cb": self._last_error,
            "logger": CLIENT_LOG,
        }
        try:
            self.raw = Producer(settings)
        except KafkaException as error:
            raise refused_settings(error, config.settings) from error

    @property
    def is_broken(self) -> bool:
        """Whether the client has failed for good, or the end of its transaction was not awaited.

        It can then only be released.
        """
        return self._fatal is not None or self._unsettled is not None

    def translated(
        self, error: KafkaError | KafkaException, doing: str, topic: str | None = None
    ) -> ConnectError:
        """Our error for *error*, which happened while *doing*; a fatal error takes precedence."""
        if kafka_error(error).fatal():
            self._fatal = self._fatal or kafka_error(error)
        if self._unsettled is not None and self._fatal is None:
            return ReplanError(
                f"The wait for {self._unsettled} was interrupted, so its outcome is unknown."
            )
        if self._last_error.was_away and kafka_error(error).name() in _UNKNOWN_TOPIC:
            # A topic cannot be created automatically, or found, while its broker is unreachable; a new
            # producer finds out whether it exists.
            return RetriableError(
                f"The topic {topic!r} was not found during an outage of the broker. This may be temporary."
            )
        return translated(self._fatal or error, self._context(doing, topic))

    def raise_undelivered(self) -> None:
        """Raise the failure of records that were handed over earlier, at each call until it is forgotten."""
        lost = self._undelivered
        if lost is not None:
            refusal = None if self.is_broken else lost.refusal()
            raise refusal or self.translated(lost.error, lost.doing, lost.topic)
        if self._fatal is not None:
            raise self.translated(self._fatal, "writing")

    def poll(self, seconds: float = 0.0) -> None:
        """Run the client's callbacks, waiting up to *seconds* for an event."""
        try:
            self.raw.poll(seconds)
        except KafkaException as error:
            # The client reports a fatal error like this; the next call raises it.
            self._fatal = self._fatal or kafka_error(error)

    def forget_undelivered(self) -> None:
        """Forget failed records, because their transaction was aborted."""
        self.poll()
        self._undelivered = None

    def writes_to(self, topic: str) -> None:
        """Note that the open transaction has records for *topic*."""
        self._topics.add(topic)

    def settle(self, call: Callable[[float], None], doing: str) -> None:
        """End the transaction by *call*, retrying until its time-out; after that its outcome is unknown."""
        deadline = Deadline.after(self._timeout_seconds, self._clock)
        self._stall.begin(len(self.raw))

        def watched(seconds: float) -> None:
            try:
                call(seconds)
            finally:
                self._stall.see(len(self.raw))

        self.persist(watched, doing, deadline, late=lambda: timed_out(self._context(doing)))
        self.began = None
        self._topics.clear()

    def persist(
        self,
        call: Callable[[float], None],
        doing: str,
        deadline: Deadline,
        *,
        late: Callable[[], ConnectError] | None = None,
    ) -> None:
        """Make *call* with the seconds that it may take, and retry while that can help; raise *late* after *deadline*."""
        while True:
            # Until the client has answered, no other call is allowed.
            self._unsettled = doing
            try:
                call(max(0.1, deadline.remaining(at_most=_STEP_SECONDS)))
            except KafkaException as error:
                self._raise_final(kafka_error(error), doing)
                if deadline.expired:
                    raise (late() if late else self._unanswered(doing)) from error
                self.report_waiting(doing)
            else:
                self._unsettled = None
                return

    def partitions(self, topic: str, deadline: Deadline) -> int:
        """The partition count of *topic* now; asks a broker, which may create the topic."""
        doing = f"the partitions of topic {topic!r}"
        found: list[int] = []

        def ask(seconds: float) -> None:
            made = Deadline.after(_CREATION_SECONDS, self._clock)
            while True:
                answer = self.raw.list_topics(topic, seconds).topics[topic]
                if answer.error is None:
                    found.append(len(answer.partitions))
                    return
                if made.expired or answer.error.name() not in _BEING_CREATED:
                    raise KafkaException(answer.error)
                self.poll(0.1)
                self.report_waiting(doing)

        self.persist(ask, doing, deadline)
        return found[-1]

    def _raise_final(self, error: KafkaError, doing: str) -> None:
        self.poll()
        if error.txn_requires_abort() or error.fatal() or not is_retriable(error):
            self._unsettled = None
            self.raise_undelivered()
            blamed = self._blamed(error)
            raise self.translated(error, "writing to" if blamed else doing, blamed)

    def _blamed(self, error: KafkaError) -> str | None:
        """The topics of which *error* concerns one, without saying which."""
        if error.name() != "TOPIC_AUTHORIZATION_FAILED":
            return None
        return "' or '".join(sorted(self._topics)) or None

    def wait_for_room(self) -> None:
        """Wait until a quarter of the queue has been acknowledged, so that refusals stay rare."""
        enough = len(self.raw) * 3 // 4
        report_at = self._clock() + _STEP_SECONDS
        self._stall.begin(len(self.raw))
        while len(self.raw) > enough:
            self.poll(0.1)
            self._stall.see(len(self.raw))
            self.raise_undelivered()
            if self._clock() >= report_at:
                self.report_waiting("room in the send queue")
                report_at = self._clock() + _STEP_SECONDS

    def flush(self) -> None:
        """Wait until everything handed over is acknowledged; raises when anything was not."""
        while self._unflushed():
            self.raise_undelivered()
            self.report_waiting("records to be acknowledged")
        self.raise_undelivered()

    def _unflushed(self) -> bool:
        try:
            return self.raw.flush(_STEP_SECONDS) > 0
        except KafkaException as error:
            self._fatal = self._fatal or kafka_error(error)
            return True

    def report_waiting(self, what: str) -> None:
        """Report that the producer still waits for *what*."""
        if self._waiting is not None:
            self._waiting(f"{what} ({self._last_error.text})" if self._last_error.text else what)

    def release(self) -> None:
        """Release the client without waiting for the broker, and purge its queue."""
        # The client's own close waits forever for a transaction's abort and for deliveries.
        self.raw.purge()
        del self.raw

    def _unanswered(self, doing: str) -> RetriableError:
        detail = (
            f" Last error of the client: {self._last_error.text}." if self._last_error.text else ""
        )
        return RetriableError(f"Kafka did not answer {doing} in time.{detail}")

    def _context(self, doing: str, topic: str | None = None) -> Context:
        return Context(
            doing=doing,
            topic=topic,
            transactional_id=self._transactional_id,
            owner=self._owner,
            open_seconds=None if self.began is None else self._clock() - self.began,
            timeout_seconds=self._timeout_seconds,
            was_away=self._last_error.was_away or self._stall.longest > self._timeout_seconds / 2,
        )

    def on_delivery(self, error: KafkaError | None, message: Delivered) -> None:
        """Keep the first failure, or a more specific one; the delivery callback of every record."""
        if error is None or error.name() in _PURGED:
            return
        lost = Undelivered(
            error=error,
            topic=message.topic(),
            partition=message.partition(),
            key_bytes=_length(message.key()),
            value_bytes=_length(message.value()),
        )
        if self._undelivered is None or self._undelivered.is_less_specific_than(lost):
            self._undelivered = lost


def _length(content: str | bytes | None) -> int | None:
    return None if content is None else len(content)
