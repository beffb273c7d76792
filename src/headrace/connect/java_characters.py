"""Java's classes of characters as Python's: each a pattern that matches exactly one character."""

from __future__ import annotations

import functools
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
"""What a backslash and one letter stand for, in patterns that are compiled as ASCII."""

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
# Characters that Unicode counts in besides, mostly marks, are none that a name in Kafka can have.
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
    """Any character that the class *one* has not."""
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
    raise ValueError(f"\\p{{{name}}} is no class of characters that is known here")


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
