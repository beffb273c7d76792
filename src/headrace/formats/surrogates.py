"""Halves of surrogate pairs, escaped in JSON: no character, but of JSON's grammar. Pure."""

from __future__ import annotations

import re
from typing import Final

_LEAD, _TRAIL = rb"\\u[dD][89abAB][0-9a-fA-F]{2}", rb"\\u[dD][c-fC-F][0-9a-fA-F]{2}"
_ANY: Final = re.compile(rb"\\u[dD][89a-fA-F]")
# A backslash takes the next character with it, so that an escaped one begins no escape.
_ESCAPE: Final = re.compile(
    rb"(?P<pair>%b%b)|(?P<half>%b|%b)|\\." % (_LEAD, _TRAIL, _LEAD, _TRAIL), re.DOTALL
)
_CHARACTER: Final = rb"\ufffd"


def without_halves(text: bytes) -> bytes:
    """*text* with another escape, of the same length, in place of each half; *text* itself where there is none."""
    if _ANY.search(text) is None:
        return text
    return _ESCAPE.sub(lambda found: _CHARACTER if found["half"] else found[0], text)


def first_half(text: bytes) -> str | None:
    """The first half in *text*, as it is written there, or ``None``."""
    if _ANY.search(text) is None:
        return None
    halves = (found["half"] for found in _ESCAPE.finditer(text) if found["half"])
    half = next(halves, None)
    return None if half is None else half.decode()
