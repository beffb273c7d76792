"""What a slot gets from the driver: the ticket that Spark carries, its work, and the reason to end."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Self

from headrace.connect.partition import SourcePartition
from headrace.connect.task import Split
from headrace.kafka.wire.transaction_state import ProducerIdentity
from headrace.task.connector_spec import ConnectorSpec


@dataclass(frozen=True, slots=True, kw_only=True)
class SlotTicket:
    """What Spark carries to a slot: the driver's address, and the token of the work.

    *fingerprint* is the SHA-256 of the driver's certificate, if the channel is encrypted. The work itself and secrets of connectors are
    fetched over the channel, so that no Spark plan contains them.
    """

    host: str
    port: int
    secret: bytes = field(repr=False)
    token: str
    fingerprint: bytes | None = None

    def for_reading(self) -> SlotTicket:
        """The ticket of the process that reads for this slot, if that is a separate one."""
        return dataclasses.replace(self, token=reading_token(self.token))


def reading_token(token: str) -> str:
    """The token of the process that reads for the slot of *token*. Pure."""
    return f"{token}/read"


@dataclass(frozen=True, slots=True, kw_only=True)
class SlotWork:
    """Everything that one slot needs: its connector's *spec* and its own settings; the answer to a granted claim.

    Durations are in seconds. *config* is the task's configuration, *splits* are its share of a plan, which has no end if
    it is *followed*. *transaction_seconds* is how long the broker lets a transaction stay open. *identity* is what the driver
    has got for the transactional id; without it the slot's producer gets one itself.
    """

    spec: ConnectorSpec
    task: int
    task_class: str
    config: Mapping[str, str] = field(repr=False)
    planned: bool
    splits: tuple[Split, ...]
    transactional_id: str | None
    identity: ProducerIdentity | None = None
    lease_seconds: float
    grace_seconds: float
    transaction_seconds: float
    linger_seconds: float | None = None
    once: bool = False
    followed: bool = False

    @property
    def has_end(self) -> bool:
        """Whether it has a share that it can finish: a polled task has none, and a followed share has no end."""
        return self.planned and not self.followed

    def as_message(self) -> dict[str, Any]:
        """The work as JSON values."""
        message = {each.name: getattr(self, each.name) for each in dataclasses.fields(self)}
        message["spec"] = self.spec.as_message()
        message["splits"] = [_split_message(split) for split in self.splits]
        return message

    @classmethod
    def from_message(cls, message: Mapping[str, Any]) -> Self:
        """The work from what :meth:`as_message` returned."""
        given = dict(message)
        given["spec"] = ConnectorSpec.from_message(given["spec"])
        if given["identity"] is not None:
            given["identity"] = ProducerIdentity(*given["identity"])
        given["splits"] = tuple(_split(each) for each in given["splits"])
        return cls(**given)


def _split_message(split: Split) -> list[Any]:
    offset = None if split.offset is None else dict(split.offset)
    return [dict(split.partition), offset, dict(split.details)]


def _split(message: Sequence[Any]) -> Split:
    partition, offset, details = message
    return Split(partition=SourcePartition(partition), offset=offset, details=details)


class EndReason(StrEnum):
    """Why the driver wants the slots of a micro-batch to end."""

    STOP = "stop"
    """The connector is to stop."""
    SIBLING = "sibling"
    """Another slot ended early, and its work has to be planned again."""
    RECONFIGURATION = "reconfiguration"
    """The connector asked for new tasks, or for a new plan while its shares are followed."""
    IDLE = "idle"
    """All slots follow their shares, and there has been nothing for any of them for a while."""
    BUDGET = "budget"
    """Others need the slots, a sibling that has ended should read again, or a new plan was requested; a share with an end
    is left where resuming later is cheap."""
