"""One key of a configuration, read as Kafka Connect's validation reads it: a value, and all that is wrong."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from headrace.connect.setting import Setting
from headrace.connect.setting_type import parsed

NULL = "Null value can not be supplied as the configuration value."


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """The value of a key, ``None`` when there is none, and what is wrong with it."""

    value: object = field(default=None, repr=False)
    errors: tuple[str, ...] = ()


def reading(setting: Setting, given: Mapping[str, str | None]) -> Reading:
    """What *given* holds for *setting*. Pure.

    A value that is refused but of the right type is still shown; of one that has no value at all it is also
    said that there must be one, where the setting has limits: Kafka's validators are asked about null.
    """
    text = given.get(setting.name, "")
    if text is None:
        return Reading(errors=(*_about_null(setting), NULL))
    try:
        return Reading(value=setting.read({setting.name: text} if setting.name in given else {}))
    except ValueError as error:
        told = str(error)
    try:
        value = parsed(text, setting.type) if setting.name in given else None
    except ValueError:
        value = None
    return Reading(value=value, errors=(told, *(_about_null(setting) if value is None else ())))


def _about_null(setting: Setting) -> tuple[str, ...]:
    limits = setting.limits
    if limits.at_least is not None or limits.at_most is not None:
        complaint = "Value must be non-null"
    elif limits.one_of:
        how = " (case insensitive)" if limits.ignore_case else ""
        complaint = f"String must be one of{how}: {', '.join(limits.one_of)}"
    else:
        return ()
    return (f"Invalid value null for configuration {setting.name}: {complaint}",)
