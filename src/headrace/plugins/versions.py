"""Versions of plugins: required ones in Maven's notation of ranges, compared with the available one (KIP-891)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from headrace.config.aliases import connector_name
from headrace.config.connector_config import CONNECTOR_CLASS, connector_version
from headrace.connect.config import Problem
from headrace.connect.connector import SourceConnector
from headrace.herder.errors import BadRequestError

_BEGINNINGS: Final = ("[", "(")
_PART: Final = re.compile(r"\d+|[a-z]+", re.ASCII)
_LATEST: Final = "latest"

_ALIASES: Final = {"a": "alpha", "b": "beta", "m": "milestone", "cr": "rc"}
_RELEASES: Final = ("ga", "final", "release")
# Maven's order: what comes before a release, the release itself, service packs, other words, numbers.
_BEFORE: Final = ("alpha", "beta", "milestone", "rc", "snapshot")
_THE_RELEASE: Final = len(_BEFORE)
_SERVICE_PACK: Final = _THE_RELEASE + 1
_WORD: Final = _THE_RELEASE + 2
_NUMBER: Final = _THE_RELEASE + 3

_Part = tuple[int, int, str]
Order = tuple[_Part, ...]
_OF_CONNECTOR: Final = "connector.plugin.version"


def version_order(version: str) -> Order:
    """The key by which versions are compared: ``1.0-rc1`` is before ``1.0``, which equals ``1``, and before ``1.0.1``."""
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

    Empty when any version will do: for ``None``, an empty text and ``latest``. Raises ``ValueError`` with Maven's
    message, as Kafka Connect does.
    """
    wanted = (spec or "").strip()
    if wanted in ("", _LATEST):
        return ()
    # Without brackets it is one version.
    enclosed = wanted if wanted.startswith(_BEGINNINGS) else f"[{wanted}]"
    ranges, rest = list[VersionRange](), enclosed
    while rest.startswith(_BEGINNINGS):
        end = min((place for place in map(rest.find, ")]") if place >= 0), default=None)
        if end is None:
            raise ValueError(f"Unbounded range: {enclosed}")
        found = _range(rest[: end + 1])
        if ranges and _overlap(ranges[-1], found):
            raise ValueError(f"Ranges overlap: {enclosed}")
        ranges.append(found)
        rest = rest[end + 1 :].strip().removeprefix(",").strip()
    if rest:
        raise ValueError(f"Only fully-qualified sets allowed in multiple set scenario: {enclosed}")
    return tuple(ranges)


def _range(text: str) -> VersionRange:
    low, comma, high = (each.strip() for each in text[1:-1].partition(","))
    made = VersionRange(
        low=low,
        high=high if comma else low,
        has_low=text.startswith("["),
        has_high=text.endswith("]"),
    )
    has_both = made.has_low and made.has_high
    if not comma and not has_both:
        raise ValueError(f"Single version must be surrounded by []: {text}")
    if not comma and not low:
        raise ValueError(f"Invalid version specification: {text}")
    if low and high:
        begin, end = version_order(low), version_order(high)
        if end < begin or (end == begin and not has_both):
            raise ValueError(f"Range defies version ordering: {text}")
    return made


def _overlap(one: VersionRange, following: VersionRange) -> bool:
    if not one.high:
        return False
    return not following.low or version_order(following.low) < version_order(one.high)


def version_problem(name: str, wanted: str | None, available: str | None) -> str | None:
    """Kafka Connect's sentence that the plugin *name* has no version that is *wanted*, if so.

    *wanted* is a version, or ranges such as ``[1.0,2.0)``; ``None``, an empty text and ``latest`` mean any. *available*
    is its only version, ``None`` when its author declares none. Pure.
    """
    try:
        ranges = version_ranges(wanted)
    except ValueError as error:
        return str(error)
    if not ranges or (available is not None and any(each.holds(available) for each in ranges)):
        return None
    shown = ",".join(map(str, ranges))
    return (
        f"Plugin {name} not found that matches the version range {shown}, "
        f"available versions: [{available or 'undefined'}]"
    )


def connector_version_problems(
    connector: SourceConnector, props: Mapping[str, str]
) -> Iterator[Problem]:
    """The problem with the version of *connector*, if *props* require another one. Pure."""
    kind = type(connector)
    name = connector_name(f"{kind.__module__}:{kind.__qualname__}")
    problem = version_problem(name, props.get(_OF_CONNECTOR), connector_version(kind))
    if problem:
        yield _OF_CONNECTOR, problem


def check_version(name: str, wanted: str | None, available: str | None) -> None:
    """Raise :class:`~headrace.herder.errors.BadRequestError` when *name* is not available as *wanted*. Pure."""
    try:
        version_ranges(wanted)
    except ValueError as error:
        raise BadRequestError(f"Invalid version specification: {wanted}") from error
    problem = version_problem(name, wanted, available)
    if problem:
        raise BadRequestError(problem)


def version_key(class_key: str) -> str:
    """The key that requires a version of the class at *class_key*. Pure."""
    if class_key == CONNECTOR_CLASS:
        return _OF_CONNECTOR
    return f"{class_key.removesuffix('.type')}.plugin.version"
