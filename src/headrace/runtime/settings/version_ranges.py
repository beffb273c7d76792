"""Versions of plugins that a configuration or a request asks for, in Maven's notation of ranges (KIP-891). Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

_RANGE: Final = re.compile(r"(?P<open>[\[(])(?P<inner>[^\[\]()]*)(?P<close>[\])])")
_PART: Final = re.compile(r"\d+|[a-z]+", re.ASCII)
_LATEST: Final = "latest"

_ALIASES: Final = {"a": "alpha", "b": "beta", "m": "milestone", "cr": "rc"}
_RELEASES: Final = ("ga", "final", "release")
# Maven's order: what comes before a release, the release itself, what comes behind it, other words, numbers.
_BEFORE: Final = ("alpha", "beta", "milestone", "rc", "snapshot")
_THE_RELEASE: Final = len(_BEFORE)
_SERVICE_PACK: Final = _THE_RELEASE + 1
_WORD: Final = _THE_RELEASE + 2
_NUMBER: Final = _THE_RELEASE + 3

_Part = tuple[int, int, str]
Order = tuple[_Part, ...]


def version_order(version: str) -> Order:
    """What versions are compared by: ``1.0-rc1`` is before ``1.0``, which is ``1``, and before ``1.0.1``."""
    parts = list[_Part]()
    for each in _PART.findall(version.lower()):
        part = _part(each)
        if part is None:
            continue
        # 1.0-rc is 1-rc.
        while part[0] != _NUMBER and parts and parts[-1] == (_NUMBER, 0, ""):
            parts.pop()
        parts.append(part)
    while parts and parts[-1] == (_NUMBER, 0, ""):
        parts.pop()
    return (*parts, (_THE_RELEASE, 0, ""))


def _part(text: str) -> _Part | None:
    if text.isdecimal():
        return _NUMBER, int(text), ""
    word = _ALIASES.get(text, text)
    if word in _RELEASES:
        return None
    if word in _BEFORE:
        return _BEFORE.index(word), 0, ""
    return (_SERVICE_PACK, 0, "") if word == "sp" else (_WORD, 0, word)


@dataclass(frozen=True, slots=True, kw_only=True)
class VersionRange:
    """The versions between *low* and *high*; an empty end is open."""

    low: str
    high: str
    has_low: bool
    has_high: bool

    def holds(self, version: str) -> bool:
        """Whether *version* is one of them."""
        mine, low, high = map(version_order, (version, self.low, self.high))
        above = not self.low or low < mine or (self.has_low and low == mine)
        below = not self.high or mine < high or (self.has_high and mine == high)
        return above and below

    def __str__(self) -> str:
        begin, end = "[" if self.has_low else "(", "]" if self.has_high else ")"
        return f"{begin}{self.low},{self.high}{end}"


def version_ranges(spec: str | None) -> tuple[VersionRange, ...]:
    """The ranges that *spec* allows: a version, or ranges such as ``[1.0,2.0),[3.0,)``.

    Empty when any version will do: for nothing and for ``latest``. Raises ``ValueError`` with Kafka Connect's words.
    """
    asked = (spec or "").strip()
    if asked in ("", _LATEST):
        return ()
    enclosed = asked if asked[0] in "[(" else f"[{asked}]"
    found = list(_RANGE.finditer(enclosed))
    is_whole = ",".join(each[0] for each in found) == re.sub(r"\s", "", enclosed)
    # Without brackets it is one version.
    if not found or not is_whole or (enclosed != asked and "," in asked):
        raise ValueError(f"Invalid version specification: {asked}")
    return tuple(_range(each, asked) for each in found)


def _range(found: re.Match[str], spec: str) -> VersionRange:
    low, comma, high = (each.strip() for each in found["inner"].partition(","))
    made = VersionRange(
        low=low,
        high=high if comma else low,
        has_low=found["open"] == "[",
        has_high=found["close"] == "]",
    )
    is_one = not comma and bool(low) and made.has_low and made.has_high
    is_ordered = not (low and high) or version_order(low) <= version_order(high)
    if not (is_one or comma) or "," in high or not is_ordered:
        raise ValueError(f"Invalid version specification: {spec}")
    return made


def range_problem(spec: str) -> str | None:
    """What is wrong with the notation of *spec*."""
    try:
        version_ranges(spec)
    except ValueError as error:
        return str(error)
    return None
