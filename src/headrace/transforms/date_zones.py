"""Zones as ``SimpleDateFormat`` reads them: offsets, and names."""

from __future__ import annotations

import re

from headrace.transforms.date_names import ZONES

_HOURS_OF_DAY = 24
_ISO = {
    1: re.compile(r"Z|([+-])(\d\d)", re.ASCII),
    2: re.compile(r"Z|([+-])(\d\d)([0-5]\d)", re.ASCII),
    3: re.compile(r"Z|([+-])(\d\d):([0-5]\d)", re.ASCII),
}
_PLAIN = re.compile(r"([+-])(\d\d)([0-5]\d)", re.ASCII)
_GREENWICH = re.compile(r"GMT(?:([+-])(\d\d?):([0-5]\d)|(?![+-]))", re.ASCII | re.IGNORECASE)
_NAMES = sorted(ZONES, key=len, reverse=True)


def read_iso_zone(text: str, place: int, letters: int) -> tuple[int, int] | None:
    """The minutes from UTC and the place behind them, for as many *letters* ``X``; ``None`` where there are none. Pure."""
    return _offset(_ISO[letters].match(text, place))


def read_zone(text: str, place: int) -> tuple[int, int] | None:
    """The same for ``z`` and ``Z``: ``-0800``, ``GMT+1:00``, or a name. Pure."""
    found = _PLAIN.match(text, place) or _GREENWICH.match(text, place)
    return _offset(found) if found else _named(text, place)


def _offset(found: re.Match[str] | None) -> tuple[int, int] | None:
    if found is None:
        return None
    parts: list[str | None] = [*found.groups(), None]
    sign, hours, minutes = (each or "0" for each in parts[:3])
    if int(hours) >= _HOURS_OF_DAY:
        return None
    offset = int(hours) * 60 + int(minutes)
    return (offset if sign == "+" else -offset), found.end()


def _named(text: str, place: int) -> tuple[int, int] | None:
    for name in _NAMES:
        if text[place : place + len(name)].lower() == name.lower():
            return ZONES[name], place + len(name)
    return None
