"""A list of SQL expressions, cut at the commas that stand between them and at no others."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

# What keeps its commas to itself: text (with Spark's backslashes), names in backticks, comments.
_WHOLE: Final = re.compile(
    r"""[rR](?:'[^']*'|"[^"]*")|'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|`[^`]*`|--[^\n]*|/\*.*?\*/|\w+""",
    re.DOTALL,
)
_ENDS_WITH_AS: Final = re.compile(r"\s[aA][sS]$")
_QUOTES: Final = "'\"`"
_CLOSED_BY: Final = {"(": ")", "[": "]", "{": "}"}


def sql_items(text: str) -> tuple[str, ...]:
    """The expressions of *text*, each without the blanks around it. Pure.

    Raises ``ValueError`` with a sentence when there is none between two commas, when a name
    is missing behind ``AS``, or when something is opened
    and not closed, or the other way round.
    """
    items = tuple(piece.strip() for piece in _pieces(text))
    if not all(items):
        raise ValueError("There is no expression between two commas, or at an end of the list.")
    nameless = next(filter(_ENDS_WITH_AS.search, items), None)
    if nameless is not None:
        # Spark would take AS itself for the name.
        raise ValueError(f"A name is missing behind AS in {nameless}.")
    return items


def _pieces(text: str) -> Iterator[str]:
    begin = at = 0
    awaited = list[str]()
    while at < len(text):
        whole = _WHOLE.match(text, at)
        if whole is not None:
            at = whole.end()
            continue
        character = text[at]
        if character == "," and not awaited:
            yield text[begin:at]
            begin = at + 1
        _nest(character, awaited)
        at += 1
    if awaited:
        raise ValueError(f"A {awaited[-1]} is missing.")
    yield text[begin:]


def _nest(character: str, awaited: list[str]) -> None:
    """Note what *character* opens in *awaited*, or closes."""
    if character in _QUOTES or character in _CLOSED_BY.values():
        if not awaited or awaited.pop() != character:
            raise ValueError(f"A {character} stands alone.")
    elif character in _CLOSED_BY:
        awaited.append(_CLOSED_BY[character])
