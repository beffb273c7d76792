"""Which settings remote topics get from their source topics. Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Final

from headrace.kafka.topic_admin import TopicSetting
from headrace.mirror.filters import ConfigPropertyFilter

# Java's largest long, which means no limit.
_NO_LIMIT: Final = str(2**63 - 1)
_MAX_BYTES: Final = "max.message.bytes"
_ALWAYS: Final[Mapping[str, str]] = {
    # The time of a record is the source's.
    "message.timestamp.type": "CreateTime",
    "message.timestamp.before.max.ms": _NO_LIMIT,
    "message.timestamp.after.max.ms": _NO_LIMIT,
}


def settings_at_creation(
    source: Mapping[str, TopicSetting], chosen: ConfigPropertyFilter
) -> dict[str, str]:
    """What a remote topic is created with whose source topic has the settings *source*."""
    return {
        name: found.value
        for name, found in _copied(source, chosen).items()
        if found.value is not None and (not found.is_default or chosen.copies_default(name))
    }


def settings_changed(
    source: Mapping[str, TopicSetting], chosen: ConfigPropertyFilter
) -> dict[str, str | None]:
    """What a remote topic's settings are set to; ``None`` is the default of its own cluster."""
    return {
        name: None if found.is_default and not chosen.copies_default(name) else found.value
        for name, found in _copied(source, chosen).items()
    }


def necessary_settings(
    source: Mapping[str, TopicSetting], known: Collection[str]
) -> dict[str, str]:
    """What a remote topic needs to take any record that its source topic took, and to keep its time.

    These go before what is copied. *known* are the settings that topics of the target have. Records were within the source's
    limits of time when they were written, and need not be when they are copied: so there are none. They may be as large as
    the source allows, also where not the topic says so but its brokers do.
    """
    needed = dict(_ALWAYS)
    largest = source.get(_MAX_BYTES)
    if largest is not None and largest.value is not None and not largest.is_default:
        needed[_MAX_BYTES] = largest.value
    return {name: value for name, value in needed.items() if name in known}


def settings_of_existing(
    source: Mapping[str, TopicSetting], chosen: ConfigPropertyFilter, known: Collection[str]
) -> dict[str, str | None]:
    """What the settings of a remote topic that exists are to be: those *chosen* of its source's, and what it needs.

    *known* as for :func:`necessary_settings`. What the source topic has from its brokers' files is theirs; MirrorMaker leaves what
    it had of its own before.
    """
    of_brokers = {
        name: None
        for name, found in source.items()
        if found.is_static and not found.is_read_only and chosen.copies(name)
    }
    return {
        **of_brokers,
        **settings_changed(source, chosen),
        **necessary_settings(source, known),
    }


def settings_differing(
    wanted: Mapping[str, str | None], remote: Mapping[str, TopicSetting]
) -> dict[str, str | None]:
    """What of *wanted* a remote topic with the settings *remote* does not have yet: nothing is sent without need."""
    own = {name: found.value for name, found in remote.items() if found.is_own}
    return {name: value for name, value in wanted.items() if own.get(name) != value}


def _copied(
    source: Mapping[str, TopicSetting], chosen: ConfigPropertyFilter
) -> dict[str, TopicSetting]:
    return {
        name: found
        for name, found in source.items()
        if not (found.is_read_only or found.is_sensitive or found.is_static) and chosen.copies(name)
    }
