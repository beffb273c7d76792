"""What two workers have written to the same topics, in a form that can be compared."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from headrace.testing.judge import committed_records

Headers = tuple[tuple[str, bytes | None], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Landed:
    """A record in Kafka, without its place."""

    key: bytes | None
    value: bytes | None
    headers: Headers


Topics = Mapping[tuple[str, int], list[Landed]]
"""Records by topic and partition, in their order."""


def landed(
    bootstrap: str, topics: Iterable[str], *, behind: Mapping[tuple[str, int], int]
) -> tuple[Topics, dict[tuple[str, int], int]]:
    """The records of *topics* that have higher offsets than *behind* says, and the highest ones that there are."""
    found: defaultdict[tuple[str, int], list[Landed]] = defaultdict(list)
    last = dict(behind)
    for record in committed_records(bootstrap, *topics):
        place = (record.topic, record.partition)
        if record.offset > behind.get(place, -1):
            found[_timeless(record.topic, record.timestamp), record.partition].append(_told(record))
            last[place] = record.offset
    return dict(found), last


def _told(record: Any) -> Landed:  # noqa: ANN401 (the library has no types)
    return Landed(
        key=_timeless_bytes(record.key, record.timestamp),
        value=_timeless_bytes(record.value, record.timestamp),
        headers=tuple((name, value) for name, value in record.headers),
    )


def _timeless_bytes(content: bytes | None, timestamp: int) -> bytes | None:
    if content is None:
        return None
    number, _, instant = _forms(timestamp)
    return content.replace(number.encode(), b"NOW").replace(instant.encode(), b"NOW")


def _timeless(topic: str, timestamp: int) -> str:
    return topic.replace(_forms(timestamp)[1], "NOW")


def _forms(timestamp: int) -> tuple[str, str, str]:
    """How chains tell the record's own time, which differs by nature: its milliseconds, its day, its instant."""
    at = datetime.fromtimestamp(timestamp / 1000, UTC)
    instant = at.strftime("%Y-%m-%dT%H:%M:%S") + f".{timestamp % 1000:03}"
    return str(timestamp), f"{at:%Y-%m-%d}", instant
