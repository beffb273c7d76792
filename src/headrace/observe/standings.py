"""How connectors are at one moment, as metrics tell it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectorStanding:
    """A connector's *state* and those of its *tasks*, by their numbers, with Kafka Connect's names.

    *version* is ``None`` while it is not known; *type* is ``source`` or ``unknown``.
    """

    name: str
    type: str
    class_name: str
    state: str
    version: str | None = None
    tasks: Mapping[int, str]


Standings = Callable[[], Sequence[ConnectorStanding]]
"""Tells how every connector of the worker is now; called when metrics are asked for, on that thread."""
