"""Where a field is, within what is nested: the syntax of Kafka Connect's ``field.syntax.version`` (KIP-821); pure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, Literal

Version = Literal["V1", "V2"]
TICK: Final = "`"
_ESCAPED_TICK: Final = "\\`"


def parsed_path(text: str, version: str) -> tuple[str, ...]:
    """The names on the way to the field *text*, from the outside in.

    In V1 *text* is one name. In V2 dots are between names; a name within backticks may have dots of its own,
    and backticks, with a backslash where a dot follows. The version counts in either case. Raises
    ``ValueError`` for a backtick at the start of a name that none ends.
    """
    if version.upper() == "V1":
        return (text,)
    return tuple(_names(text)) if text else ()


def _names(text: str) -> Iterator[str]:
    start: int | None = 0
    while start is not None:
        if text.startswith(TICK, start):
            end = _closing(text, start)
            yield text[start + 1 : end].replace(f"{_ESCAPED_TICK}.", f"{TICK}.")
            end += 1
        else:
            dot = text.find(".", start)
            end = len(text) if dot < 0 else dot
            yield text[start:end]
        start = end + 1 if end < len(text) else None


def _closing(text: str, opening: int) -> int:
    """Where the backtick is that ends the name which *opening* begins: the first before a dot or the end."""
    place = text.find(TICK, opening + 1)
    while place >= 0:
        ends = place + 1 == len(text) or text[place + 1] == "."
        if ends and text[place - 1] != "\\":
            return place
        place = text.find(TICK, place + 1)
    raise ValueError(
        f"Incomplete backtick pair in path: [{text}], consider adding a backslash before backtick at "
        f"position {opening} to escape it"
    )
