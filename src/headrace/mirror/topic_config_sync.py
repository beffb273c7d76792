"""Which settings remote topics get from their source topics. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from enum import Enum
from typing import Final, NamedTuple

from headrace.mirror.filters import ConfigPropertyFilter

# Java's largest long, which means no limit.
_NO_LIMIT: Final = str(2**63 - 1)
_MAX_BYTES: Final = "max.message.bytes"
_TIMESTAMPS: Final[tuple[str, ...]] = (
    "message.timestamp.before.max.ms",
    "message.timestamp.after.max.ms",
)


class Origin(Enum):
    """Where a topic's setting comes from, by Kafka's names and numbers."""

    UNKNOWN = 0
    DYNAMIC_TOPIC_CONFIG = 1
    DYNAMIC_BROKER_CONFIG = 2
    DYNAMIC_DEFAULT_BROKER_CONFIG = 3
    STATIC_BROKER_CONFIG = 4
    DEFAULT_CONFIG = 5
    DYNAMIC_BROKER_LOGGER_CONFIG = 6
    DYNAMIC_CLIENT_METRICS_CONFIG = 7
    DYNAMIC_GROUP_CONFIG = 8


class TopicSetting(NamedTuple):
    """One setting of a topic, as a broker describes it."""

    name: str
    value: str | None
    origin: Origin
    is_read_only: bool = False
    is_sensitive: bool = False

    @property
    def is_default(self) -> bool:
        """Whether it is neither the topic's nor of a broker's configuration."""
        return self.origin is Origin.DEFAULT_CONFIG


def settings_at_creation(
    settings: Iterable[TopicSetting], chosen: ConfigPropertyFilter
) -> dict[str, str]:
    """What a remote topic is created with whose source topic has *settings*."""
    return {
        each.name: each.value
        for each in _copied(settings, chosen)
        if each.value is not None and (not each.is_default or chosen.copies_default(each.name))
    }


def settings_changed(
    settings: Iterable[TopicSetting], chosen: ConfigPropertyFilter
) -> dict[str, str | None]:
    """What a remote topic's settings are set to whose source topic has *settings*; ``None``: its own cluster's default."""
    return {
        each.name: None if each.is_default and not chosen.copies_default(each.name) else each.value
        for each in _copied(settings, chosen)
    }


def accepting(settings: Iterable[TopicSetting], known: Collection[str]) -> dict[str, str]:
    """What a remote topic needs besides, to take every record that its source topic has taken.

    *known* are the settings that the target's topics have. Records have been within the source's limits of time when they were
    written, and need not be when they are copied, so that the remote topic has none. Records may be as large as the source
    allows, also where not the topic but its brokers do. These are stronger than what is copied.
    """
    needed: dict[str, str] = dict.fromkeys(_TIMESTAMPS, _NO_LIMIT)
    for each in settings:
        if each.name == _MAX_BYTES and each.value is not None and not each.is_default:
            needed[_MAX_BYTES] = each.value
    return {name: value for name, value in needed.items() if name in known}


def settings_differing(
    wanted: Mapping[str, str | None], remote: Iterable[TopicSetting]
) -> dict[str, str | None]:
    """What of *wanted* a remote topic with the settings *remote* does not have yet: nothing is sent without need."""
    own = {each.name: each.value for each in remote if each.origin is Origin.DYNAMIC_TOPIC_CONFIG}
    return {name: value for name, value in wanted.items() if own.get(name) != value}


def _copied(
    settings: Iterable[TopicSetting], chosen: ConfigPropertyFilter
) -> Iterable[TopicSetting]:
    return (
        each
        for each in settings
        if not each.is_read_only
        and not each.is_sensitive
        and each.origin is not Origin.STATIC_BROKER_CONFIG
        and chosen.copies(each.name)
    )
