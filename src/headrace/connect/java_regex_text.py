"""The text of a Java regular expression while it is read: a place in it, and the flags that hold there."""

from __future__ import annotations

import re

_QUOTED = re.compile(r"(\\[^Q])|\\Q(.*?)(?:\\E|\Z)", re.DOTALL)


class RegexText:
    r"""A pattern, with what stands in ``\Q…\E`` as escapes; *place* and *flags* change as it is read."""

    def __init__(self, pattern: str) -> None:
        self.pattern = _unquoted(pattern)
        self.place = 0
        self.flags = frozenset[str]()

    def problem(self, what: str) -> ValueError:
        """An error that says *what* is wrong at this place."""
        return ValueError(f"{what} near index {self.place}")

    def peek(self, length: int = 1) -> str:
        """What comes next, as many characters as there are up to *length*."""
        return self.pattern[self.place : self.place + length]

    def take(self, expression: re.Pattern[str], otherwise: str) -> re.Match[str]:
        """Go on behind what *expression* finds here. Raises ``ValueError``, saying *otherwise*, where it finds nothing."""
        found = expression.match(self.pattern, self.place)
        if found is None:
            raise self.problem(otherwise)
        self.place = found.end()
        return found


def _unquoted(pattern: str) -> str:
    r"""*pattern* with what stands in ``\Q…\E`` as escapes."""

    def escaped(found: re.Match[str]) -> str:
        if found.group(1):
            return found.group(1)
        return "".join(f"\\x{{{ord(each):x}}}" for each in found.group(2))

    return _QUOTED.sub(escaped, pattern)
