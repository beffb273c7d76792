"""Replayed records of an offsets topic as source offsets by connector. Pure."""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from headrace.connect.partition import SourceOffset, SourcePartition
from headrace.connect.task import Offsets
from headrace.kafka.sender import OffsetEntry
from headrace.storage.offset_codec import (
    Unreadable,
    decoded_key,
    decoded_value,
    encoded_entries,
    encoded_key,
)

_LOG = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where a record lies in its topic; records of one partition of the topic are ordered by offset."""

    partition: int
    offset: int
    timestamp: int

    def is_after(self, other: Place) -> bool:
        """Whether this record was written later, as far as the log can tell."""
        if self.partition == other.partition:
            return self.offset > other.offset
        return self.timestamp > other.timestamp


@dataclass(frozen=True, slots=True, kw_only=True)
class _Form:
    offset: SourceOffset
    place: Place


class OffsetIndex:
    """The last offset of each source partition, under whatever bytes it was written.

    Others may write a source partition's entries in another order than we do, and so under another key.
    The record written last counts. A tombstone removes only what was stored under its own bytes: that is
    also all that is left to see of it once the topic has been compacted.
    """

    def __init__(self) -> None:
        self._forms: dict[str, dict[SourcePartition, dict[bytes, _Form]]] = defaultdict(dict)
        self._snapshots: dict[str, Mapping[SourcePartition, SourceOffset]] = {}

    def apply(self, key: bytes | None, value: bytes | None, place: Place) -> None:
        """Take in one record; what neither we nor Kafka Connect wrote is logged and skipped."""
        named, offset = decoded_key(key), decoded_value(value)
        if isinstance(named, Unreadable) or isinstance(offset, Unreadable):
            reason = named if isinstance(named, Unreadable) else offset
            _LOG.warning("Skipped the offset record with key %r at %s: %s", key, place, reason)
            return
        self._snapshots.pop(named.connector, None)
        forms = self._forms[named.connector].setdefault(named.partition, {})
        if offset is None:
            forms.pop(key or b"", None)
        else:
            forms[key or b""] = _Form(offset=offset, place=place)
        if not forms:
            del self._forms[named.connector][named.partition]

    def known(self, connector: str) -> Mapping[SourcePartition, SourceOffset]:
        """All offsets of *connector*; a snapshot that does not change."""
        if connector not in self._snapshots:
            partitions = self._forms.get(connector, {})
            latest = {one: _latest(forms).offset for one, forms in partitions.items()}
            self._snapshots[connector] = MappingProxyType(latest)
        return self._snapshots[connector]

    def connectors(self) -> set[str]:
        """The connectors that have an offset."""
        return {connector for connector, partitions in self._forms.items() if partitions}

    def entries_for(self, connector: str, offsets: Offsets) -> list[OffsetEntry]:
        """The records that store *offsets*, with tombstones for other bytes of the same partitions.

        The tombstones come last: a writer without transactions that dies in between leaves both forms,
        of which the newer counts, and never none.
        """
        return [*encoded_entries(connector, offsets), *self._tombstones(connector, offsets)]

    def _tombstones(self, connector: str, offsets: Offsets) -> list[OffsetEntry]:
        partitions = self._forms.get(connector, {})
        return [
            (form, None)
            for partition in offsets
            if partition in partitions
            for form in partitions[partition].keys() - {encoded_key(connector, partition)}
        ]


def _latest(forms: Mapping[bytes, _Form]) -> _Form:
    first, *others = forms.values()
    latest = first
    for form in others:
        if form.place.is_after(latest.place):
            latest = form
    return latest
