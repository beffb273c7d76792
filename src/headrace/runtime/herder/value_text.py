"""Values of settings as the text that Kafka Connect's answers have for them."""

from __future__ import annotations

from headrace.connect.java_text import java_double
from headrace.connect.setting import REQUIRED
from headrace.connect.setting_type import HIDDEN, SettingType


def value_text(value: object, kind: SettingType) -> str | None:
    """*value*, of the type *kind*, as text: lists with commas, passwords hidden; ``None`` where there is none.

    Takes the default of a required setting, too, which is none. Pure.
    """
    if value is None or value is REQUIRED:
        return None
    if kind is SettingType.PASSWORD:
        return HIDDEN
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, tuple | list):
        items: tuple[object, ...] | list[object] = value
        return ",".join(map(str, items))
    return java_double(float(str(value))) if kind is SettingType.DOUBLE else str(value)
