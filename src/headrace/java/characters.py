"""Java's classes of characters as Python's, alone and within regular expressions."""

from __future__ import annotations

import functools
import re
import unicodedata
from collections.abc import Callable, Mapping
from typing import Final

ANY: Final = r"[\s\S]"
LINE_ENDS: Final = "\\n\\r\\u0085\\u2028\\u2029"

_HORIZONTAL = r"[ \t\xa0\u1680\u180e\u2000-\u200a\u202f\u205f\u3000]"
_VERTICAL = r"[\n\x0b\f\r\x85\u2028\u2029]"

SHORT_CLASSES: Final[Mapping[str, str]] = {
    "d": r"\d",
    "D": r"\D",
    "w": r"\w",
    "W": r"\W",
    "s": r"\s",
    "S": r"\S",
    "h": _HORIZONTAL,
    "H": f"[^{_HORIZONTAL[1:]}",
    "v": _VERTICAL,
    "V": f"[^{_VERTICAL[1:]}",
}
"""The classes that a backslash and one letter stand for, in patterns that are compiled as ASCII."""

_POSIX: Final[Mapping[str, str]] = {
    "Lower": "[a-z]",
    "Upper": "[A-Z]",
    "ASCII": r"[\x00-\x7f]",
    "Alpha": "[a-zA-Z]",
    "Digit": "[0-9]",
    "Alnum": "[a-zA-Z0-9]",
    "Punct": r"[!-/:-@\[-`{-~]",
    "Graph": "[!-~]",
    "Print": "[ -~]",
    "Blank": r"[ \t]",
    "Cntrl": r"[\x00-\x1f\x7f]",
    "XDigit": "[0-9a-fA-F]",
    "Space": r"[ \t\n\x0b\f\r]",
}
# Unicode includes further characters, mostly marks, which names in Kafka cannot contain.
_BINARY: Final[Mapping[str, tuple[str, ...]]] = {
    "ALPHABETIC": ("L", "Nl"),
    "LETTER": ("L",),
    "LOWERCASE": ("Ll",),
    "UPPERCASE": ("Lu",),
    "TITLECASE": ("Lt",),
    "DIGIT": ("Nd",),
    "PUNCTUATION": ("P",),
    "CONTROL": ("Cc",),
}
_CATEGORIES: Final = frozenset(
    ["LC", *"LMNPSZC"]
    + [f"L{each}" for each in "ultmo"]
    + [f"M{each}" for each in "nce"]
    + [f"N{each}" for each in "dlo"]
    + [f"P{each}" for each in "cdseifo"]
    + [f"S{each}" for each in "mcko"]
    + [f"Z{each}" for each in "slp"]
    + [f"C{each}" for each in "cfson"]
)
_CASES: Final = frozenset({"Lu", "Ll", "Lt"})
_CODE_POINTS = 0x110000


def complement(one: str) -> str:
    """Any character outside the class *one*."""
    return f"(?:(?!{one}){ANY})"


def property_class(name: str, *, any_case: bool) -> str:
    r"""The class that ``\p{name}`` stands for; with *any_case*, that of capital letters has all that have a case.

    Pure. Raises ``ValueError`` for a class that is not known here.
    """
    if name in _POSIX:
        return _POSIX[name]
    categories = _categories(name)
    if any_case and _CASES.issuperset(categories):
        categories = ("LC",)
    return _of_categories(categories)


def _categories(name: str) -> tuple[str, ...]:
    key, equals, value = name.partition("=")
    if equals and key.lower() in {"gc", "general_category"} and value in _CATEGORIES:
        return (value,)
    if name.removeprefix("Is") in _CATEGORIES:
        return (name.removeprefix("Is"),)
    if name.startswith("Is") and name[2:].upper() in _BINARY:
        return _BINARY[name[2:].upper()]
    raise ValueError(f"\\p{{{name}}} is not a supported class of characters")


@functools.cache
def _of_categories(categories: tuple[str, ...]) -> str:
    """The characters of Unicode's *categories*, which may be named by their first letter."""
    wanted = tuple(_CASES) if categories == ("LC",) else categories
    return f"[{''.join(_ranges(lambda char: unicodedata.category(char).startswith(wanted)))}]"


def _ranges(belongs: Callable[[str], bool]) -> list[str]:
    ranges, start = list[str](), -1
    for code in range(_CODE_POINTS + 1):
        inside = code < _CODE_POINTS and belongs(chr(code))
        if inside and start < 0:
            start = code
        elif not inside and start >= 0:
            ranges.append(f"\\U{start:08x}-\\U{code - 1:08x}")
            start = -1
    return ranges


_QUOTED = re.compile(r"(\\[^Q])|\\Q(.*?)(?:\\E|\Z)", re.DOTALL)


class RegexText:
    r"""A pattern, with the text in ``\Q…\E`` escaped; *place* and *flags* change as it is read."""

    def __init__(self, pattern: str) -> None:
        self.pattern = _unquoted(pattern)
        self.place = 0
        self.flags = frozenset[str]()

    def problem(self, what: str) -> ValueError:
        """An error with *what* is wrong, and this place."""
        return ValueError(f"{what} near index {self.place}")

    def peek(self, length: int = 1) -> str:
        """The next characters, at most *length*."""
        return self.pattern[self.place : self.place + length]

    def take(self, expression: re.Pattern[str], otherwise: str) -> re.Match[str]:
        """Match *expression* here and advance past the match. Raises ``ValueError`` with *otherwise* without a match."""
        found = expression.match(self.pattern, self.place)
        if found is None:
            raise self.problem(otherwise)
        self.place = found.end()
        return found


def _unquoted(pattern: str) -> str:
    r"""*pattern* with the text in ``\Q…\E`` escaped."""

    def escaped(found: re.Match[str]) -> str:
        if found.group(1):
            return found.group(1)
        return "".join(f"\\x{{{ord(each):x}}}" for each in found.group(2))

    return _QUOTED.sub(escaped, pattern)


_CONTROLS = {"t": "\t", "n": "\n", "r": "\r", "f": "\f", "a": "\a", "e": "\x1b"}
_HEX = re.compile(r"x([0-9a-fA-F]{2})|x\{([0-9a-fA-F]+)\}|u([0-9a-fA-F]{4})")
_OCTAL = re.compile(r"0([0-3][0-7]{2}|[0-7]{1,2})")
_PROPERTY = re.compile(r"[pP](?:\{([^}]*)\}|(.))", re.DOTALL)
_LAST_CODE_POINT = 0x10FFFF


def shared_escape(text: RegexText) -> str:
    """The translation of an escape, inside or outside of a class of characters."""
    character = text.peek()
    if character in SHORT_CLASSES:
        text.place += 1
        return SHORT_CLASSES[character]
    if character and character in "pP":
        named = text.take(_PROPERTY, "Unclosed property")
        name = named.group(1) or named.group(2) or ""
        one = property_class(name, any_case="i" in text.flags)
        return complement(one) if character == "P" else one
    return re.escape(_escaped_character(text))


def _escaped_character(text: RegexText) -> str:
    character = text.peek()
    code = _HEX.match(text.pattern, text.place) or _OCTAL.match(text.pattern, text.place)
    if code is not None:
        text.place = code.end()
        digits = next(each for each in code.groups() if each)
        number = int(digits, 8 if character == "0" else 16)
        if number > _LAST_CODE_POINT:
            raise text.problem("Hexadecimal codepoint is too big")
        return chr(number)
    text.place += 1
    if character == "c" and text.peek():
        text.place += 1
        return chr(ord(text.pattern[text.place - 1]) ^ 64)
    if character in _CONTROLS:
        return _CONTROLS[character]
    if not character or (character.isascii() and character.isalnum()):
        raise text.problem("Illegal/unsupported escape sequence")
    return character


def character_class(text: RegexText) -> str:
    """A class of characters, from its opening bracket on."""
    text.place += 1
    negated = text.peek() == "^"
    text.place += negated
    parts = [_union(text)]
    while text.peek(2) == "&&":
        text.place += 2
        if text.peek() == "&":
            raise text.problem("Bad class syntax")
        parts.append(_union(text))
    if text.peek() != "]":
        raise text.problem("Unclosed character class")
    text.place += 1
    *others, last = parts
    one = f"(?:{''.join(f'(?={each})' for each in others)}{last})" if others else last
    return complement(one) if negated else one


def _union(text: RegexText) -> str:
    """One operand of ``&&``."""
    members, nested = list[str](), list[str]()
    while text.place < len(text.pattern) and text.peek(2) != "&&":
        if text.peek() == "]" and (members or nested):
            break
        if text.peek() == "[":
            nested.append(character_class(text))
        elif "x" in text.flags and text.peek() in " \t\n\r\f\v#":
            raise text.problem("White space in a class is not supported with the flag x")
        else:
            _member(text, members, nested)
    if not members and not nested:
        ended = text.place >= len(text.pattern)
        raise text.problem("Unclosed character class" if ended else "Bad class syntax")
    plain = [f"[{''.join(members)}]"] if members else []
    return f"(?:{'|'.join(plain + nested)})" if nested else plain[0]


def _member(text: RegexText, members: list[str], nested: list[str]) -> None:
    """One character, a range or an escape."""
    first = _class_character(text)
    if len(first) != 1:
        nested.append(first)
        return
    ahead = text.pattern[text.place + 1 : text.place + 2]
    if text.peek() != "-" or ahead in {"]", "["}:
        members.append(re.escape(first))
        return
    text.place += 1
    last = _class_character(text)
    if len(last) != 1 or last < first:
        raise text.problem("Illegal character range")
    members.append(f"{re.escape(first)}-{re.escape(last)}")


def _class_character(text: RegexText) -> str:
    """A character, or the pattern of a class that an escape stands for."""
    character = text.peek()
    text.place += 1
    if character != "\\":
        return character
    if text.peek() and text.peek() in "dDwWsShHvVpP":
        return shared_escape(text)
    return _escaped_character(text)
