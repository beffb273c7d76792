"""What an object's name tells by the named groups of a regular expression. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping

# Java's way of naming a group, which Python lacks; `(?<=` and `(?<!` look behind in both.
_JAVA_GROUP = re.compile(r"(?<!\\)\(\?<(?=[A-Za-z])")


class NamePattern:
    """A regular expression of Python, found anywhere in a name; groups may be named as in Java, too.

    Raises ``ValueError``, with a sentence, for what is none.
    """

    def __init__(self, text: str) -> None:
        try:
            self._pattern = re.compile(_JAVA_GROUP.sub("(?P<", text))
        except re.error as error:
            raise ValueError(f"{text!r} is no regular expression: {error}") from error

    @property
    def variables(self) -> frozenset[str]:
        """The names of its groups."""
        return frozenset(self._pattern.groupindex)

    def found(self, name: str) -> Mapping[str, str] | None:
        """The texts of the groups that took part; ``None`` when it is not found in *name*."""
        found = self._pattern.search(name)
        if found is None:
            return None
        return {group: text for group, text in found.groupdict().items() if text is not None}


def pattern_problem(text: str | None) -> str | None:
    """What is wrong with a regular expression, or ``None``."""
    try:
        NamePattern(text or "")
    except ValueError as error:
        return str(error)
    return None
