"""Offsets and their history as a worker takes and answers them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec

from headrace.runtime.herder.requests import OffsetChange

Values = dict[str, Any]


class Entry(msgspec.Struct, frozen=True):
    """A source partition and its offset; Kafka Connect may answer without one of them."""

    partition: Values | None
    offset: Values | None


class Offsets(msgspec.Struct, frozen=True):
    """``GET /connectors/{name}/offsets``."""

    offsets: Sequence[Entry]

    def known(self) -> Mapping[str, Entry]:
        """Those that are there, by the text of their partition, sorted by it."""
        named = {
            text(each.partition): each
            for each in self.offsets
            if each.partition is not None and each.offset is not None
        }
        return dict(sorted(named.items()))


class LaggingEntry(msgspec.Struct, frozen=True):
    """A source partition, and how much there is behind its offset, if the connector can tell."""

    partition: Values
    offset: Values
    lag: int | None


class Lag(msgspec.Struct, frozen=True):
    """``GET /connectors/{name}/offsets/lag``."""

    lag: Sequence[LaggingEntry]


class ChangedEntry(msgspec.Struct, frozen=True):
    """A source partition of a change."""

    partition: Values
    before: Values | None
    after: Values | None


class PastChange(msgspec.Struct, frozen=True):
    """A change of offsets that somebody asked for."""

    change: int
    operation: str
    who: str | None
    at_ms: int
    done: bool
    undoes: int | None
    offsets: Sequence[ChangedEntry]
    of_deleted: bool = False


class History(msgspec.Struct, frozen=True):
    """``GET /connectors/{name}/offsets/history``, the newest first."""

    history: Sequence[PastChange]


class Message(msgspec.Struct, frozen=True):
    """What is answered to a change."""

    message: str


def sent(entries: Iterable[Entry | OffsetChange]) -> list[dict[str, object]]:
    """*entries* as requests have them."""
    return [{"partition": each.partition, "offset": each.offset} for each in entries]


def text(values: Values | None) -> str:
    """A partition or an offset as JSON, the same for the same content; ``-`` for none."""
    if values is None:
        return "-"
    return json.dumps(values, ensure_ascii=False, separators=(",", ":"), sort_keys=True)
