"""What Kafka Connect says about lists of names in a configuration."""

from __future__ import annotations

from collections.abc import Iterator

from headrace.connect.config import Problem

PAIR = 2
"""How many parts a pair has."""


def list_problems(key: str, names: tuple[str, ...], *, may_be_empty: bool) -> Iterator[Problem]:
    """What is wrong with *names*, the value of *key*. Pure."""
    if not names and not may_be_empty:
        yield (
            key,
            f"Configuration '{key}' must not be empty. Valid values include: any non-empty value",
        )
    elif "" in names:
        yield key, f"Configuration '{key}' values must not be empty."
    elif len(set(names)) < len(names):
        yield key, f"Configuration '{key}' values must not be duplicated."


def parts_of(pair: str) -> list[str]:
    """*pair* between its colons, as Java splits it: without what is empty at the end."""
    return pair.rstrip(":").split(":")
