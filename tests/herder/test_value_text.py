"""Values of settings as text."""

from __future__ import annotations

import pytest

from headrace.connect.setting import REQUIRED, Password, SettingType
from headrace.herder.answers import value_text


@pytest.mark.parametrize(
    ("value", "kind", "text"),
    [
        (None, SettingType.STRING, None),
        (REQUIRED, SettingType.INT, None),
        ("a", SettingType.STRING, "a"),
        (True, SettingType.BOOLEAN, "true"),
        ((), SettingType.LIST, ""),
        (("a", "b"), SettingType.LIST, "a,b"),
        (1, SettingType.DOUBLE, "1.0"),
        (1e10, SettingType.DOUBLE, "1.0E10"),
        (7, SettingType.LONG, "7"),
        (Password("secret"), SettingType.PASSWORD, "[hidden]"),
        (None, SettingType.PASSWORD, None),
    ],
)
def test_values_are_text_as_java_has_it(value: object, kind: SettingType, text: str | None):
    """Passwords are hidden, and nothing stays nothing."""
    assert text == value_text(value, kind)
