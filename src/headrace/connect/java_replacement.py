"""What Java's regular expressions put in the place of a match: text with ``$1``, ``${name}`` and escapes."""

from __future__ import annotations

import re
from dataclasses import dataclass

_PART = re.compile(r"\\(.)|\$([0-9]+)|\$\{([a-zA-Z][a-zA-Z0-9]*)\}|([^\\$]+)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class JavaReplacement:
    """Texts, and the groups of a pattern by their numbers; immutable."""

    parts: tuple[str | int, ...]

    def of(self, match: re.Match[str]) -> str:
        """What *match* is replaced with; a group that took no part is empty. Pure."""
        return "".join(
            (match.group(part) or "") if isinstance(part, int) else part for part in self.parts
        )

    def first(self, pattern: re.Pattern[str], text: str) -> str:
        """*text* with the first match of *pattern* replaced. Pure."""
        found = pattern.search(text)
        if found is None:
            return text
        return f"{text[: found.start()]}{self.of(found)}{text[found.end() :]}"


def java_replacement(replacement: str, pattern: re.Pattern[str]) -> JavaReplacement:
    """*replacement* for matches of *pattern*. Pure. Raises ``ValueError`` with Java's sentence."""
    parts, place = list[str | int](), 0
    while place < len(replacement):
        found = _PART.match(replacement, place)
        if found is None:
            raise ValueError(_illegal(replacement[place:]))
        escaped, digits, name, text = found.groups()
        place = found.end()
        if digits:
            number, rest = _group(digits, pattern)
            parts += (number, rest)
        elif name:
            parts.append(_named(name, pattern))
        else:
            parts.append(escaped or text)
    return JavaReplacement(tuple(parts))


def _group(digits: str, pattern: re.Pattern[str]) -> tuple[int, str]:
    """The number of the group that *digits* begin with, as long as there is such a group, and the other digits."""
    length = 1
    while length < len(digits) and int(digits[: length + 1]) <= pattern.groups:
        length += 1
    number = int(digits[:length])
    if number > pattern.groups:
        raise ValueError(f"No group {number}")
    return number, digits[length:]


def _named(name: str, pattern: re.Pattern[str]) -> int:
    if name not in pattern.groupindex:
        raise ValueError(f"No group with name {{{name}}}")
    return pattern.groupindex[name]


def _illegal(rest: str) -> str:
    if rest == "\\":
        return "character to be escaped is missing"
    if rest == "$":
        return "Illegal group reference: group index is missing"
    return "Illegal group reference"
