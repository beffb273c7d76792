"""Patterns of Java's ``SimpleDateFormat``: their tokens, and times as text. English, UTC."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from headrace.java.gregorian_calendar import (
    DAY_MILLIS,
    date_of,
    day_number,
    first_week,
    week_year,
    weekday,
)

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


_HOUR = 3_600_000
_MINUTE = 60_000
_SECOND = 1000
_FULL = 4
_ISO_ZONE_LETTERS = 3


@dataclass(frozen=True, slots=True)
class Token:
    """A letter of a pattern with its repetitions, or literal text (without a letter)."""

    letter: str
    text: str

    @property
    def count(self) -> int:
        """How often the letter is repeated."""
        return len(self.text)


class PatternError(ValueError):
    """A pattern is invalid; the message is Java's."""


def tokens(pattern: str) -> tuple[Token, ...]:
    """The tokens of *pattern*. Pure. Raises :class:`PatternError`."""
    return tuple(_joined(_tokens(pattern)))


def text_of(token: Token, millis: int) -> str:
    """The text of *token* at *millis* since 1970. Pure."""
    return _LETTERS[token.letter].text(token, millis) if token.letter else token.text


def unit_millis(token: Token) -> tuple[int, int | None]:
    """For how many milliseconds the text of *token* stays the same, and after how many such units it repeats."""
    return _LETTERS[token.letter].unit if token.letter else _NEVER


def unchanging_millis(pattern: tuple[Token, ...]) -> int:
    """For how many milliseconds the text of *pattern* stays the same. Pure."""
    return min((unit_millis(token)[0] for token in pattern), default=DAY_MILLIS)


def pattern_problem(pattern: str) -> str | None:
    """What is wrong with *pattern*, or ``None``; for settings."""
    try:
        tokens(pattern)
    except PatternError as error:
        return str(error)
    return None


def formatted(pattern: tuple[Token, ...], millis: int) -> str:
    """*millis* since 1970 in the form of *pattern*. Pure."""
    return "".join(text_of(token, millis) for token in pattern)


def _tokens(pattern: str) -> Iterator[Token]:
    place = 0
    while place < len(pattern):
        character, start = pattern[place], place
        if character == "'":
            text, place = _quoted(pattern, place + 1)
            yield Token("", text)
            continue
        while place < len(pattern) and pattern[place] == character:
            place += 1
        is_letter = character.isascii() and character.isalpha()
        yield (_letter if is_letter else _literal)(pattern[start:place])


def _quoted(pattern: str, place: int) -> tuple[str, int]:
    """The text of a quotation that begins before *place*, and the place after it."""
    if pattern[place : place + 1] == "'":
        return "'", place + 1
    text = ""
    while True:
        end = pattern.find("'", place)
        if end < 0:
            raise PatternError("Unterminated quote")
        text, place = text + pattern[place:end], end + 1
        if pattern[place : place + 1] != "'":
            return text, place
        text, place = text + "'", place + 1


def _letter(text: str) -> Token:
    if text[0] not in _LETTERS:
        raise PatternError(f"Illegal pattern character '{text[0]}'")
    if text[0] == "X" and len(text) > _ISO_ZONE_LETTERS:
        raise PatternError(f"invalid ISO 8601 format: length={len(text)}")
    return Token(text[0], text)


def _literal(text: str) -> Token:
    return Token("", text)


def _joined(parts: Iterator[Token]) -> Iterator[Token]:
    """*parts* with neighbouring literal texts as one."""
    literal = ""
    for part in parts:
        if not part.letter:
            literal += part.text
            continue
        if literal:
            yield Token("", literal)
            literal = ""
        yield part
    if literal:
        yield Token("", literal)


def _date(millis: int) -> tuple[int, int, int]:
    return date_of(millis // DAY_MILLIS)


def _padded(number: int, count: int) -> str:
    return f"{number:0{count}d}"


def _year(year: int, count: int) -> str:
    if count != 2:  # noqa: PLR2004 (two letters are two digits)
        return _padded(year, count)
    return "-" * (year < 0) + _padded(abs(year) % 100, 2)


def _era_year(token: Token, millis: int) -> str:
    year = _date(millis)[0]
    return _year(year if year > 0 else 1 - year, token.count)


def _week_year(token: Token, millis: int) -> str:
    return _year(week_year(millis // DAY_MILLIS), token.count)


def _named(names: tuple[str, ...], index: int, count: int) -> str:
    return names[index] if count >= _FULL else names[index][:SHORT]


def _month(token: Token, millis: int) -> str:
    month = _date(millis)[1]
    if token.count >= SHORT:
        return _named(MONTHS, month, token.count)
    return _padded(month + 1, token.count)


def _week_of_year(token: Token, millis: int) -> str:
    day = millis // DAY_MILLIS
    start = first_week(day_number(week_year(day), 0, 1))
    return _padded((day - start) // 7 + 1, token.count)


def _week_of_month(token: Token, millis: int) -> str:
    year, month, _ = _date(millis)
    start = first_week(day_number(year, month, 1))
    return _padded((millis // DAY_MILLIS - start) // 7 + 1, token.count)


def _day_of_year(token: Token, millis: int) -> str:
    return _padded(millis // DAY_MILLIS - day_number(_date(millis)[0], 0, 1) + 1, token.count)


def _weekday(token: Token, millis: int) -> str:
    return _named(WEEKDAYS, weekday(millis // DAY_MILLIS), token.count)


def _iso_weekday(token: Token, millis: int) -> str:
    return _padded((weekday(millis // DAY_MILLIS) - 1) % 7 + 1, token.count)


def _numbered(number: Callable[[int], int]) -> Callable[[Token, int], str]:
    return lambda token, millis: _padded(number(millis), token.count)


def _fixed(choose: Callable[[int], str]) -> Callable[[Token, int], str]:
    return lambda token, _: choose(token.count)


@dataclass(frozen=True, slots=True)
class _Letter:
    text: Callable[[Token, int], str]
    unit: tuple[int, int | None]


_DAY = (DAY_MILLIS, None)
_HOURS = (_HOUR, 24)
_NEVER = (DAY_MILLIS, 1)


def _hour(millis: int) -> int:
    return millis // _HOUR % 24


_LETTERS: Final[Mapping[str, _Letter]] = {
    "G": _Letter(lambda _, millis: ERAS[_date(millis)[0] > 0], _DAY),
    "y": _Letter(_era_year, _DAY),
    "Y": _Letter(_week_year, _DAY),
    "M": _Letter(_month, _DAY),
    "L": _Letter(_month, _DAY),
    "w": _Letter(_week_of_year, _DAY),
    "W": _Letter(_week_of_month, _DAY),
    "D": _Letter(_day_of_year, _DAY),
    "d": _Letter(_numbered(lambda millis: _date(millis)[2]), _DAY),
    "F": _Letter(_numbered(lambda millis: (_date(millis)[2] - 1) // 7 + 1), _DAY),
    "E": _Letter(_weekday, _DAY),
    "u": _Letter(_iso_weekday, _DAY),
    "a": _Letter(lambda _, millis: HALVES[_hour(millis) // 12], _HOURS),
    "H": _Letter(_numbered(_hour), _HOURS),
    "k": _Letter(_numbered(lambda millis: _hour(millis) or 24), _HOURS),
    "K": _Letter(_numbered(lambda millis: _hour(millis) % 12), _HOURS),
    "h": _Letter(_numbered(lambda millis: _hour(millis) % 12 or 12), _HOURS),
    "m": _Letter(_numbered(lambda millis: millis // _MINUTE % 60), (_MINUTE, 60)),
    "s": _Letter(_numbered(lambda millis: millis // _SECOND % 60), (_SECOND, 60)),
    "S": _Letter(_numbered(lambda millis: millis % _SECOND), (1, 1000)),
    "z": _Letter(_fixed(lambda count: UTC_NAME if count >= _FULL else "UTC"), _NEVER),
    "Z": _Letter(_fixed(lambda _: "+0000"), _NEVER),
    "X": _Letter(_fixed(lambda _: "Z"), _NEVER),
}
