"""Records that were handed over and that the broker did not take."""

from __future__ import annotations

from dataclasses import dataclass

from confluent_kafka import KafkaError

from headrace.connect.errors import TaskFailedError
from headrace.kafka.errors import advice_for

_SIZES = ("MSG_SIZE_TOO_LARGE", "RECORD_LIST_TOO_LARGE")
_OF_ONE_RECORD = frozenset(
    {"MSG_SIZE_TOO_LARGE", "RECORD_LIST_TOO_LARGE", "INVALID_RECORD", "INVALID_TIMESTAMP"}
)


class LateRefusalError(TaskFailedError):
    """The broker has refused one record of those that were handed over before.

    *topic*, *key_bytes* and *value_bytes* (``None`` for null) tell it from others, for a layer that knows
    where they came from; *reason* and *advice* are the parts of the message.
    """

    def __init__(
        self,
        reason: str,
        *,
        advice: str,
        topic: str,
        key_bytes: int | None,
        value_bytes: int | None,
    ) -> None:
        self.reason = reason
        self.advice = advice
        self.topic = topic
        self.key_bytes = key_bytes
        self.value_bytes = value_bytes
        super().__init__(f"{reason} {advice}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Undelivered:
    """A record that was handed over and not taken; sizes are ``None`` for null."""

    error: KafkaError
    topic: str | None
    key_bytes: int | None
    value_bytes: int | None
    partition: int | None = None

    @property
    def doing(self) -> str:
        """What was refused; with the partition where it is the partition that lacks."""
        if self.error.name() != "_UNKNOWN_PARTITION":
            return "writing to"
        return f"writing to partition {self.partition} of"

    def tells_less_than(self, other: Undelivered) -> bool:
        """Whether *other*, which failed later, says more about why its request failed.

        A request fails as a whole, so its first record may be an innocent one.
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
