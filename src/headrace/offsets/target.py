"""Where a connector's tasks commit its source offsets, as a value that a message can carry. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Final


@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetTopic:
    """A topic of source offsets: the worker's, or the connector's own (KIP-618).

    With *has_secondary* it is the connector's own, and what is committed there is copied to the worker's store.
    """

    name: str
    has_secondary: bool = False


@dataclass(frozen=True, slots=True)
class DriverStore:
    """The driver's store, a worker's SQLite file: tasks report acknowledged offsets to it. At least once only."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TargetGroup:
    """A consumer group on the cluster that the tasks write to, with which nobody consumes (KIP-656).

    *codec* is the path ``module:Class`` of the :class:`~headrace.connect.group_offsets.GroupOffsetCodec` that makes its
    entries, and *config* are the codec's settings.
    """

    group_id: str
    codec: str
    config: Mapping[str, str] = field(default_factory=dict[str, str])


OffsetTarget = OffsetTopic | DriverStore | TargetGroup

_KINDS: Final[Mapping[str, type[OffsetTarget]]] = {
    "topic": OffsetTopic,
    "driver": DriverStore,
    "group": TargetGroup,
}


def target_message(target: OffsetTarget) -> dict[str, Any]:
    """*target* as JSON values."""
    [kind] = [name for name, each in _KINDS.items() if type(target) is each]
    return {"kind": kind, **asdict(target)}


def target_of(message: Mapping[str, Any]) -> OffsetTarget:
    """The target that :func:`target_message` described."""
    fields = dict(message)
    return _KINDS[fields.pop("kind")](**fields)
