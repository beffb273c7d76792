"""Aiven's ``file.name.template`` as a regular expression. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from headrace.sources.name_pattern import NamePattern

_PLACEHOLDERS: Final[Mapping[str, str]] = {
    "{{topic}}": r"(?P<topic>[a-zA-Z0-9\-_.]+)",
    "{{partition}}": r"(?P<partition>\d+)",
    "{{start_offset}}": r"(?P<startOffset>\d+)",
    "{{timestamp}}": r"\d+",
}
# Java has both in character classes, where Python takes them for characters, now still.
_JAVA_ONLY: Final = ("&&", "[[")


def regex_of(template: str) -> str:
    """What is found somewhere in the keys of the objects that *template* selects.

    Exactly these placeholders are known; all else is a regular expression already, with the digits, letters
    and spaces of ASCII, as in Java. Raises ``ValueError``, with a sentence, for what cannot be one here.
    """
    text = template
    for placeholder, pattern in _PLACEHOLDERS.items():
        text = text.replace(placeholder, pattern)
    if "{{" in text:
        known = ", ".join(_PLACEHOLDERS)
        raise ValueError(
            f"{template!r} has a placeholder that source connectors do not have. Write one of {known}, "
            "without spaces and parameters, or a named group such as (?<topic>[^/]+)."
        )
    found = next((each for each in _JAVA_ONLY if each in text), None)
    if found:
        raise ValueError(
            f"{template!r} has {found!r}, which only Java's regular expressions understand. Write the "
            "characters that are meant into one pair of brackets."
        )
    scoped = f"(?a:{text})"
    try:
        NamePattern(scoped)
    except ValueError as error:
        raise ValueError(f"{template!r} is no regular expression: {_reason(error)}") from error
    return scoped


def _reason(error: ValueError) -> str:
    """What is wrong, without the place, which is one in another text than the user's."""
    cause = error.__cause__
    return cause.msg if isinstance(cause, re.error) else str(error)


def told_by(template: str) -> frozenset[str]:
    """The names of the groups that *template* has; raises as :func:`regex_of`."""
    return NamePattern(regex_of(template)).variables
