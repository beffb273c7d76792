"""The names that Java gives months, days and zones in English."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

ERAS: Final = ("BC", "AD")
HALVES: Final = ("AM", "PM")
MONTHS: Final = (
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
)
WEEKDAYS: Final = (
    "Sunday",
    "Monday",
    "Tuesday",
    "Wednesday",
    "Thursday",
    "Friday",
    "Saturday",
)
SHORT: Final = 3
"""Letters of a name's short form."""

UTC_NAME: Final = "Coordinated Universal Time"

ZONES: Final[Mapping[str, int]] = {
    "Coordinated Universal Time": 0,
    "Greenwich Mean Time": 0,
    "UTC": 0,
    "CET": 60,
    "CEST": 120,
    "EET": 120,
    "EEST": 180,
    "EST": -300,
    "EDT": -240,
    "CST": -360,
    "CDT": -300,
    "MST": -420,
    "MDT": -360,
    "PST": -480,
    "PDT": -420,
    "HST": -600,
    "JST": 540,
    "MSK": 180,
}
"""Zones that a text may name, besides GMT, with their minutes from UTC; summer time has names of its own."""
