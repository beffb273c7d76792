"""Versions of plugins that a request asks for, in Maven's notation of ranges (KIP-891)."""

from __future__ import annotations

import re
from dataclasses import dataclass

from headrace.runtime.herder.errors import BadRequestError

_RANGE = re.compile(r"(?P<open>[\[(])(?P<inner>[^\[\]()]*)(?P<close>[\])])")
_PART = re.compile(r"\d+|[a-z]+", re.ASCII)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Range:
    """The versions between two; an empty end is open."""

    low: str
    high: str
    has_low: bool
    has_high: bool

    def holds(self, version: str) -> bool:
        """Whether *version* is one of them."""
        mine = _order(version)
        above = not self.low or mine > _order(self.low) or (self.has_low and version == self.low)
        below = not self.high or mine < _order(self.high)
        return above and (below or (self.has_high and version == self.high))

    def __str__(self) -> str:
        return (
            f"{'[' if self.has_low else '('}{self.low},{self.high}{']' if self.has_high else ')'}"
        )


def check_version(name: str, wanted: str | None, available: str | None) -> None:
    """Refuse a version of the plugin *name* that is not the one that is *available*.

    *wanted* is a version, or ranges such as ``[1.0,2.0)``; nothing and ``latest`` mean any. Raises
    :class:`~headrace.runtime.herder.errors.BadRequestError` with Kafka Connect's words. Pure.
    """
    if not wanted or wanted == "latest":
        return
    ranges = _ranges(wanted.strip())
    if available is None or not any(each.holds(available) for each in ranges):
        told = ",".join(map(str, ranges))
        raise BadRequestError(
            f"Plugin {name} not found that matches the version range {told}, "
            f"available versions: [{available or 'undefined'}]"
        )


def _ranges(spec: str) -> list[_Range]:
    enclosed = spec if spec[:1] in ("[", "(") else f"[{spec}]"
    found = list(_RANGE.finditer(enclosed))
    if not found or ",".join(each[0] for each in found) != enclosed.replace(" ", ""):
        raise BadRequestError(f"Invalid version specification: {spec}")
    return [_range(each, spec) for each in found]


def _range(found: re.Match[str], spec: str) -> _Range:
    ends = [each.strip() for each in found["inner"].split(",")]
    exact = len(ends) == 1
    closed = found["open"] == "[" and found["close"] == "]"
    if len(ends) > 2 or (exact and (not closed or not ends[0])):  # noqa: PLR2004 (both ends)
        raise BadRequestError(f"Invalid version specification: {spec}")
    return _Range(
        low=ends[0],
        high=ends[-1],
        has_low=found["open"] == "[",
        has_high=found["close"] == "]",
    )


def _order(version: str) -> tuple[tuple[int, int, str], ...]:
    """Numbers count as numbers, and come behind words: 1.0-rc1 is before 1.0.0."""
    parts = _PART.findall(version.lower())
    return tuple((1, int(each), "") if each.isdecimal() else (0, 0, each) for each in parts)
