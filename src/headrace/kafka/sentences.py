"""How numbers and names of topics, partitions and brokers stand in sentences."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

SHOWN: Final = 10
"""How many names a sentence has at most: a topic may have thousands of partitions, and it is to be read."""


def counted(number: int, noun: str) -> str:
    """``1 partition``, ``2 partitions``."""
    return f"{number} {noun}{'' if number == 1 else 's'}"


def listed(
    what: Sequence[object], of: int | None = None, *, most: int = SHOWN, separator: str = ", "
) -> str:
    """The first few of them, *most* at most, and how many there are besides; *of* is how many there are, if *what* is not all."""
    total = len(what) if of is None else of
    shown = separator.join(map(str, what[:most]))
    return shown if total <= most else f"{shown} and {total - most} more"
