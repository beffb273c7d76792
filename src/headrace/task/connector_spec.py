"""A connector's effective settings, made by validation, and read by the herder, the driver and each task."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Self

from headrace.converters import is_bytes
from headrace.observe.secret_masking import Secrets
from headrace.offsets.target import OffsetTarget, TargetGroup, target_message, target_of
from headrace.task.topic_creation import TopicGroup


class Delivery(StrEnum):
    """The guarantee that a connector runs with."""

    EXACTLY_ONCE = "exactly-once"
    AT_LEAST_ONCE = "at-least-once"


class SenderKind(StrEnum):
    """What sends records to Kafka."""

    CLIENT = "client"
    """The client library's producer."""
    WIRE = "wire"
    """Our own: record batches that are encoded by columns, and requests that are written here."""


class BoundaryKind(StrEnum):
    """Where transactions end (KIP-618)."""

    POLL = "poll"
    INTERVAL = "interval"
    CONNECTOR = "connector"


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorPolicy:
    """What happens to a record that cannot be read, converted or sent (KIP-298).

    Retriable errors are retried for *retry_seconds* (``None`` means forever), at most *retry_delay_seconds* apart.
    With *tolerate* the record is then sent to the topic *dead_letters*, with headers that describe the error if
    *headers* is set; without a topic it is skipped. *log* logs each error, *log_content* with the record's content.
    *replication* is the replication factor of a dead letter topic that has to be created.
    """

    tolerate: bool = False
    dead_letters: str | None = None
    replication: int = 3
    headers: bool = False
    log: bool = False
    log_content: bool = False
    retry_seconds: float | None = 0.0
    retry_delay_seconds: float = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class PluginChoice:
    """A plugin class by its name, with its settings."""

    class_name: str
    config: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class StageChoice:
    """A transformation, and the predicate that selects the records to which it applies; *negate* inverts it."""

    transform: PluginChoice
    predicate: PluginChoice | None = None
    negate: bool = False

    @property
    def plugins(self) -> tuple[PluginChoice, ...]:
        """The transformation, and the predicate if there is one."""
        return (self.transform,) if self.predicate is None else (self.transform, self.predicate)


@dataclass(frozen=True, kw_only=True)
class ConnectorSpec:
    """The effective, fully resolved settings of a connector in JSON-able form. Durations are in seconds.

    Made after validation (:mod:`headrace.plugins.connector_spec`), read by the herder, the driver and each task. Tasks
    commit offsets to *offsets*. *secrets* are those in *props*, which must not appear in logs, errors or answers. Missing
    topics are created as *topic_groups* say, by a client with the settings *admin*; without groups, the broker may
    create them. *enforces_max_tasks* is ``tasks.max.enforce``.
    """

    name: str
    props: Mapping[str, str] = field(repr=False)
    max_tasks: int
    enforces_max_tasks: bool = True
    delivery: Delivery
    producer: Mapping[str, str] = field(repr=False)
    sender: SenderKind = SenderKind.CLIENT
    admin: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    offsets: OffsetTarget
    key_converter: PluginChoice = field(repr=False)
    value_converter: PluginChoice = field(repr=False)
    header_converter: PluginChoice = field(repr=False)
    transforms: tuple[StageChoice, ...] = field(default=(), repr=False)
    boundary: BoundaryKind = BoundaryKind.INTERVAL
    commit_seconds: float = 1.0
    records_per_second: int | None = None
    errors: ErrorPolicy = field(default_factory=ErrorPolicy)
    topic_groups: tuple[TopicGroup, ...] = ()
    secrets: Secrets = field(default_factory=Secrets, repr=False)

    @property
    def plugins(self) -> tuple[PluginChoice, ...]:
        """All plugins of its tasks: converters, transformations, predicates."""
        stages = (one for each in self.transforms for one in each.plugins)
        return (self.key_converter, self.value_converter, self.header_converter, *stages)

    @property
    def target(self) -> dict[str, str]:
        """The settings of an admin client of the cluster that its tasks write to; hold secrets."""
        servers = "bootstrap.servers"
        named = {servers: self.producer[servers]} if servers in self.producer else {}
        return {**self.admin, **named}

    @property
    def exactly_once(self) -> bool:
        """Whether its tasks write in transactions."""
        return self.delivery is Delivery.EXACTLY_ONCE

    @property
    def sends_by_wire(self) -> bool:
        """Whether its tasks send with our own producer: only that commits offsets to groups, and forwards batches."""
        return self.sender is SenderKind.WIRE or isinstance(self.offsets, TargetGroup)

    @property
    def takes_encoded(self) -> bool:
        """Whether its tasks may return encoded batches: nothing looks at the records, and its sender can forward them."""
        return (
            isinstance(self.offsets, TargetGroup)
            and not self.transforms
            and is_bytes(self.key_converter.class_name)
            and is_bytes(self.value_converter.class_name)
        )

    def as_message(self) -> dict[str, Any]:
        """The settings as JSON values, without those that its tasks do not need."""
        message = {
            each.name: getattr(self, each.name) for each in dataclasses.fields(ConnectorSpec)
        }
        for name in ("key_converter", "value_converter", "header_converter", "errors"):
            message[name] = dataclasses.asdict(message[name])
        message["offsets"] = target_message(self.offsets)
        message["topic_groups"] = [dataclasses.asdict(each) for each in self.topic_groups]
        message["transforms"] = [dataclasses.asdict(each) for each in self.transforms]
        message["secrets"] = dict(self.secrets.values)
        message["admin"] = dict(self.admin) if self.topic_groups else {}
        return message

    @classmethod
    def from_message(cls, message: Mapping[str, Any]) -> Self:
        """The settings from what :meth:`as_message` returned."""
        given = dict(message)
        for name in ("key_converter", "value_converter", "header_converter"):
            given[name] = PluginChoice(**given[name])
        given["offsets"] = target_of(given["offsets"])
        given["transforms"] = tuple(_stage(each) for each in given["transforms"])
        given["topic_groups"] = tuple(map(TopicGroup.from_message, given["topic_groups"]))
        given["errors"] = ErrorPolicy(**given["errors"])
        given["delivery"] = Delivery(given["delivery"])
        given["boundary"] = BoundaryKind(given["boundary"])
        given["sender"] = SenderKind(given["sender"])
        given["secrets"] = Secrets(values=given["secrets"])
        return cls(**given)


def _stage(message: Mapping[str, Any]) -> StageChoice:
    predicate = message["predicate"]
    return StageChoice(
        transform=PluginChoice(**message["transform"]),
        predicate=None if predicate is None else PluginChoice(**predicate),
        negate=message["negate"],
    )
