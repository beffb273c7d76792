"""Replayed records of an offsets topic as source offsets by connector. Pure."""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import cast

from headrace.connect.partition import SourceOffset, SourcePartition
from headrace.connect.task import Offsets
from headrace.kafka.partitioner import java_partition
from headrace.kafka.sender import OffsetEntry
from headrace.storage.log_position import LogPosition
from headrace.storage.offset_codec import (
    OffsetKey,
    Unreadable,
    decoded_key,
    decoded_value,
    encoded_entries,
    encoded_key,
    encoded_value,
)
from headrace.storage.packed_offset import (
    Names,
    PackedKey,
    packed_key,
    packed_partition,
    packed_value,
    unpacked_partition,
    unpacked_value,
)
from headrace.storage.packed_offsets import PackedOffsets
from headrace.storage.packed_table import PackedTable

_LOG = logging.getLogger(__name__)


# Clocks of the machines that write one topic agree better than that, or nothing works among them:
# Kerberos bears as much.
_CLOCKS_DIFFER_MS = 5 * 60 * 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class _Form:
    """The last record of a key in one partition of the topic; a *value* of ``None`` is a tombstone."""

    value: bytes | None
    place: LogPosition


def _tables() -> dict[Names, PackedTable]:
    return defaultdict(PackedTable)


# By the bytes of the key and the partition of the topic.
_Forms = dict[tuple[bytes, int], _Form]
_Removed = tuple[str, SourcePartition, bytes]


class OffsetIndex:
    """The last offset of each source partition, under whatever bytes and wherever it was written.

    **One key in several partitions of the topic**, as after the topic has gained some: of its records,
    tombstones among them, the one with the latest timestamp counts; but the one in the partition where
    Java's partitioner puts the key today counts unless it is more than five minutes older. So neither
    the order in which the partitions are replayed decides, nor clocks of machines that differ a little.
    Inside a partition only the order of the log counts.

    **Several keys of one source partition**: others may write its entries in another order than we do.
    The record written last counts. A tombstone removes only what was stored under its own bytes: that is
    also all that is left to see of it once the topic has been compacted.

    There may be millions of source partitions. One of which there is a single record, under our bytes, is
    packed; only the others have Python objects.
    """

    def __init__(self) -> None:
        self._forms: dict[str, dict[SourcePartition, _Forms]] = defaultdict(dict)
        self._tables: dict[str, dict[Names, PackedTable]] = defaultdict(_tables)
        self._snapshots: dict[str, Mapping[SourcePartition, SourceOffset]] = {}
        self._topic_partitions = 1
        self._followed = 0
        self._removed = set[_Removed]()
        self._removed_before = set[_Removed]()

    def apply(self, key: bytes | None, value: bytes | None, place: LogPosition) -> None:
        """Take in one record; what neither we nor Kafka Connect wrote is logged and skipped."""
        offset = decoded_value(value)
        if key is not None and value is not None and not isinstance(offset, Unreadable):
            ours = packed_key(key)
            if ours is not None and self._pack(ours, value, place):
                return
        named = decoded_key(key)
        if isinstance(named, Unreadable) or isinstance(offset, Unreadable):
            reason = named if isinstance(named, Unreadable) else offset
            _LOG.warning("Skipped the offset record with key %r at %s: %s", key, place, reason)
            return
        self._keep(named, key or b"", _Form(value=value, place=place))

    def follow(self, entries: Iterable[OffsetEntry]) -> None:
        """Take in records of a storage that keeps only their order, each behind all that came before it."""
        for key, value in entries:
            self._followed += 1
            self.apply(key, value, LogPosition(partition=0, offset=self._followed, timestamp=0))

    def _keep(self, named: OffsetKey, key: bytes, form: _Form) -> None:
        forms = self._forms_of(named)
        before = forms.get((key, form.place.partition))
        if before is not None and not form.place.is_after(before.place):
            return
        self._snapshots.pop(named.connector, None)
        forms[key, form.place.partition] = form
        if form.value is None:
            self._removed.add((named.connector, named.partition, key))

    def _pack(self, key: PackedKey, value: bytes, place: LogPosition) -> bool:
        """Whether the record could be packed, or is older than the one that is."""
        forms = self._forms.get(key.connector)
        if forms and unpacked_partition(key.partition) in forms:
            return False
        packed = packed_value(value, place)
        if packed is None:
            return False
        table = self._tables[key.connector][key.names]
        before = table.setdefault(key.partition, packed)
        if before is not None:
            _, place_before = unpacked_value(before)
            if place_before.partition != place.partition:
                return False
            if not place.is_after(place_before):
                return True
            table.put(key.partition, packed)
        self._snapshots.pop(key.connector, None)
        return True

    def _forms_of(self, named: OffsetKey) -> _Forms:
        """The records of a source partition, which are not packed from now on."""
        partitions = self._forms[named.connector]
        forms = partitions.get(named.partition)
        if forms is None:
            forms = partitions[named.partition] = self._taken_out(named)
        return forms

    def _taken_out(self, named: OffsetKey) -> _Forms:
        found = self._packed(named.connector, named.partition)
        if found is None:
            return {}
        key, packed = found
        self._tables[key.connector][key.names].remove(key.partition)
        value, place = unpacked_value(packed)
        return {(key.whole(), place.partition): _Form(value=value, place=place)}

    def _packed(self, connector: str, partition: SourcePartition) -> tuple[PackedKey, bytes] | None:
        packed = packed_partition(partition)
        if packed is None:
            return None
        key = PackedKey(connector, *packed)
        table = self._tables.get(connector, {}).get(key.names)
        value = None if table is None else table.get(key.partition)
        return None if value is None else (key, value)

    def replayed(self, topic_partitions: int) -> None:
        """Note that the topic has so many partitions and that all of them have been read to their ends.

        A tombstone that was there at the time before is forgotten if its key lies nowhere else: what is
        older than it has been applied by now, in whatever partition it was.
        """
        if topic_partitions != self._topic_partitions:
            self._topic_partitions = topic_partitions
            self._snapshots.clear()
        for connector, partition, key in self._removed_before - self._removed:
            self._forget(connector, partition, key)
        self._removed_before, self._removed = self._removed, set()

    def _forget(self, connector: str, partition: SourcePartition, key: bytes) -> None:
        forms = self._forms[connector].get(partition, {})
        of_key = [(form, content) for form, content in forms.items() if form[0] == key]
        if all(content.value is None for _, content in of_key):
            for form, _ in of_key:
                del forms[form]
        if len(forms) <= 1:
            self._forms[connector].pop(partition, None)
            for (left, _), content in forms.items():
                # If it can be, it is packed from now on.
                self.apply(left, content.value, content.place)

    def known(self, connector: str) -> Mapping[SourcePartition, SourceOffset]:
        """All offsets of *connector*; a snapshot that does not change."""
        if connector not in self._snapshots:
            others = {
                partition: _offset(standing) for partition, standing in self._standing(connector)
            }
            tables = self._tables.get(connector, {}).items()
            packed = {names: table.copy() for names, table in tables}
            self._snapshots[connector] = PackedOffsets(packed, others)
        return self._snapshots[connector]

    def is_empty(self) -> bool:
        """Whether no connector has an offset."""
        return not any(self.known(connector) for connector in {*self._forms, *self._tables})

    def foreign(self, connector: str) -> Mapping[SourcePartition, SourceOffset]:
        """Those of ``known`` that are stored under other bytes than ours, alone or beside ours.

        What cannot be stored under ours, because it is no text, is logged and left as it is.
        """
        return {
            partition: _offset(standing)
            for partition, standing in self._standing(connector)
            if _is_foreign(connector, partition, standing)
        }

    def entries_for(self, connector: str, offsets: Offsets) -> list[OffsetEntry]:
        """The records that store *offsets*, with tombstones for other bytes of the same partitions.

        The tombstones come last: a writer without transactions that dies in between leaves both forms,
        of which the newer counts, and never none.
        """
        return [*encoded_entries(connector, offsets), *self._tombstones(connector, offsets)]

    def _tombstones(self, connector: str, offsets: Offsets) -> list[OffsetEntry]:
        return [
            (key, None)
            for partition in offsets
            for key in self._keys_of(connector, partition)
            if key != encoded_key(connector, partition)
        ]

    def _keys_of(self, connector: str, partition: SourcePartition) -> Iterable[bytes]:
        forms = self._forms.get(connector, {}).get(partition)
        if forms is not None:
            return self._standing_keys(forms)
        # Names that Java's map has in one bucket are stored in the order in which they came.
        packed = self._packed(connector, partition)
        return () if packed is None else (packed[0].whole(),)

    def _standing(self, connector: str) -> Iterator[tuple[SourcePartition, Mapping[bytes, _Form]]]:
        """The source partitions that have an offset, with what stands under each key of theirs."""
        for partition, forms in self._forms.get(connector, {}).items():
            standing = self._standing_keys(forms)
            if standing:
                yield partition, standing

    def _standing_keys(self, forms: _Forms) -> Mapping[bytes, _Form]:
        if len(forms) == 1:
            decisive = {key: form for (key, _), form in forms.items()}
        else:
            keys = dict.fromkeys(key for key, _ in forms)
            decisive = {key: self._decisive(key, forms) for key in keys}
        return {key: form for key, form in decisive.items() if form.value is not None}

    def _decisive(self, key: bytes, forms: _Forms) -> _Form:
        rivals = {partition: form for (other, partition), form in forms.items() if other == key}
        return _decisive(key, rivals, self._topic_partitions)


def _decisive(key: bytes, rivals: Mapping[int, _Form], topic_partitions: int) -> _Form:
    """Which of *rivals*, the records of *key* by their partition of the topic, counts. Pure."""
    latest = _latest(rivals.values())
    if len(rivals) == 1:
        return latest
    # Writers send a key nowhere else since the topic has as many partitions as it has now.
    home = rivals.get(java_partition(key, topic_partitions))
    if home and home.place.timestamp >= latest.place.timestamp - _CLOCKS_DIFFER_MS:
        return home
    return latest


def _is_foreign(
    connector: str, partition: SourcePartition, standing: Mapping[bytes, _Form]
) -> bool:
    try:
        if list(standing) == [encoded_key(connector, partition)]:
            return False
        encoded_value(_offset(standing))
    except ValueError as error:
        _LOG.warning("Left an offset of %s under the bytes it was found: %s", connector, error)
        return False
    return True


def _offset(standing: Mapping[bytes, _Form]) -> SourceOffset:
    """The offset of the key that was written last; tombstones do not stand."""
    return cast("SourceOffset", decoded_value(_latest(standing.values()).value))


def _latest(forms: Iterable[_Form]) -> _Form:
    latest, *others = forms
    for form in others:
        if form.place.is_after(latest.place):
            latest = form
    return latest
