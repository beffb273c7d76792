"""Source offsets by connector from replayed records of an offsets topic; a million take little more than their own bytes. Pure."""

from __future__ import annotations

import json
import logging
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, cast

from headrace.connect.json_document import json_quoted
from headrace.connect.partition import OffsetsByNames, OffsetValue, SourceOffset, SourcePartition
from headrace.connect.task import Offsets
from headrace.kafka.partitioner import java_partition
from headrace.kafka.sender import OffsetEntry
from headrace.offsets.codec import (
    OffsetKey,
    Unreadable,
    decoded_key,
    decoded_value,
    encoded_entries,
    encoded_key,
    encoded_members,
    encoded_value,
    in_java_order,
)

_LOG = logging.getLogger(__name__)
# The clocks of machines that write to one topic differ by less than this; it is also Kerberos' limit.
_CLOCKS_DIFFER_MS = 5 * 60 * 1000


# None of these is in UTF-8.
_KEY, _VALUE, _END = b"\xff", b"\xfe", b"\xfd"
_ENTRY: Final = re.compile(rb"\xff([^\xfe]*)\xfe([^\xfd]*)\xfd")
# More entries would take longer to search; fewer would waste memory, since every bucket has an overhead: half
# as many take a tenth more.
_ENTRIES_IN_BUCKET: Final = 8


class PackedTable:
    """A hash table whose buckets are one ``bytes`` each, entry after entry.

    Python objects for each key and value, and a dictionary for them, would take twice the memory of an
    offset. Buckets are immutable, and a change replaces one: so copies share them and cost little.
    Keys and values are UTF-8; a value may also hold the byte ``fe``.
    """

    def __init__(self) -> None:
        self._buckets = [b""]
        self._count = 0

    def __len__(self) -> int:
        return self._count

    @property
    def buckets(self) -> Sequence[bytes]:
        """The buckets; equal bytes are equal entries."""
        return self._buckets

    def get(self, key: bytes) -> bytes | None:
        """The value of *key*."""
        bucket = self._buckets[hash(key) % len(self._buckets)]
        at = bucket.find(_KEY + key + _VALUE)
        if at < 0:
            return None
        start = at + len(key) + 2
        return bucket[start : bucket.index(_END, start)]

    def setdefault(self, key: bytes, value: bytes) -> bytes | None:
        """The value of *key*; if there is none, set it to *value* and return ``None``."""
        found = self.get(key)
        if found is None:
            number = hash(key) % len(self._buckets)
            self._buckets[number] += b"".join((_KEY, key, _VALUE, value, _END))
            self._count += 1
            if self._count > _ENTRIES_IN_BUCKET * len(self._buckets):
                self._grow()
        return found

    def put(self, key: bytes, value: bytes) -> None:
        """Set the value of *key*."""
        self.remove(key)
        self.setdefault(key, value)

    def remove(self, key: bytes) -> None:
        """Forget *key*, if it is there."""
        number = hash(key) % len(self._buckets)
        bucket = self._buckets[number]
        at = bucket.find(_KEY + key + _VALUE)
        if at >= 0:
            self._buckets[number] = bucket[:at] + bucket[bucket.index(_END, at) + 1 :]
            self._count -= 1

    def items(self) -> Iterator[tuple[bytes, bytes]]:
        """All keys with their values, in no order."""
        for bucket in self._buckets:
            yield from _ENTRY.findall(bucket)

    def items_unlike(self, other: PackedTable | None) -> Iterator[tuple[bytes, bytes]]:
        """``items`` without some that *other* has as well."""
        if other is None or len(self._buckets) != len(other.buckets):
            yield from self.items()
            return
        for mine, theirs in zip(self._buckets, other.buckets, strict=True):
            if mine != theirs:
                yield from _ENTRY.findall(mine)

    def copy(self) -> PackedTable:
        """An independent table with the same entries."""
        made = PackedTable()
        made._buckets, made._count = self._buckets.copy(), self._count
        return made

    def _grow(self) -> None:
        """Double the buckets: some entries of each stay, and the others move to one of the new ones."""
        half = len(self._buckets)
        self._buckets += [b""] * half
        for number in range(half):
            kept, moved = list[bytes](), list[bytes]()
            for entry in _ENTRY.finditer(self._buckets[number]):
                stays = hash(entry[1]) % len(self._buckets) == number
                (kept if stays else moved).append(entry[0])
            self._buckets[number], self._buckets[number + half] = b"".join(kept), b"".join(moved)


@dataclass(frozen=True, slots=True, kw_only=True)
class LogPosition:
    """Where a record lies in its topic; records of one partition of the topic are ordered by offset."""

    partition: int
    offset: int
    timestamp: int

    def is_after(self, other: LogPosition) -> bool:
        """Whether this record was written later, as far as the log shows."""
        if self.partition == other.partition:
            return self.offset > other.offset
        return (self.timestamp, self.partition) > (other.timestamp, other.partition)


Names = tuple[str, ...]
"""The names in a partition, in the order in which its key has them."""

_EXACT: Final = frozenset({type(None), bool, int, str})
_NOT_PACKED: Final = re.compile(rb"[\x00\xfd-\xff]")
_ONE_TEXT: Final = re.compile(rb'"([^"\\]*)":"([^"\\]*)"')
_PLACE: Final = b"\xfe"
_text: Final = json.JSONDecoder()
# Printable ASCII without escapes: for such a partition of one name, our encoding is exactly these bytes.
_SIMPLE: Final = re.compile(rb'\["([ !#-\[\]-~]*)",\{("([ !#-\[\]-~]*)":"[ !#-\[\]-~]*")\}\]')


def packed_partition(partition: SourcePartition) -> tuple[Names, bytes] | None:
    """The names and the key of *partition*, which are equal if and only if partitions are.

    ``None`` where that does not hold: for floats, bytes, and text that UTF-8 cannot encode.
    """
    if len(partition) == 1:
        ((name, value),) = partition.items()
        if type(value) is str and value.isascii() and name.isascii():
            # The common case, which is worth a fast path.
            return (name,), f"{_quoted_name(name)}:{json_quoted(value)}".encode()
    values = dict(partition.items())
    if not _EXACT.issuperset(map(type, values.values())):
        return None
    names = _in_order(frozenset(values))
    try:
        return names, encoded_members(values, names)
    except ValueError:
        return None


_quoted_name: Final = lru_cache(maxsize=1000)(json_quoted)


@lru_cache(maxsize=1000)
def _in_order(names: frozenset[str]) -> Names:
    # Java orders names that share a bucket by insertion; sorting makes our order deterministic.
    return tuple(in_java_order(sorted(names)))


def unpacked_partition(packed: bytes) -> SourcePartition:
    """The partition that :func:`packed_partition` packed."""
    found = _ONE_TEXT.fullmatch(packed)
    if found is not None:
        return SourcePartition({found[1].decode(): found[2].decode()})
    return SourcePartition(_values(b"{%b}" % packed))


@dataclass(frozen=True, slots=True)
class PackedKey:
    """A key of the offsets topic."""

    connector: str
    names: Names
    partition: bytes

    def whole(self) -> bytes:
        """The key as the offsets topic has it."""
        return _key(self.connector, self.partition)


def packed_key(key: bytes) -> PackedKey | None:
    """*key*, packed; ``None`` if its bytes are not ours or cannot be read."""
    found = _SIMPLE.fullmatch(key)
    if found is not None:
        return PackedKey(found[1].decode(), (found[3].decode(),), found[2])
    named = decoded_key(key)
    packed = None if isinstance(named, Unreadable) else packed_partition(named.partition)
    if isinstance(named, Unreadable) or packed is None:
        return None
    return PackedKey(named.connector, *packed) if key == _key(named.connector, packed[1]) else None


def _key(connector: str, partition: bytes) -> bytes:
    # A name that UTF-8 cannot encode has no key in our encoding.
    return b"[%b,{%b}]" % (json_quoted(connector).encode(errors="replace"), partition)


def packed_value(value: bytes, place: LogPosition) -> bytes | None:
    """The stored *value*, which is valid, with its *place*; ``None`` if it cannot be packed."""
    if not value.startswith(b"{") or _NOT_PACKED.search(value):
        return None
    return b"%x,%x,%x\xfe%b" % (place.partition, place.offset, place.timestamp, value)


def unpacked_value(packed: bytes) -> tuple[bytes, LogPosition]:
    """The value and the place that :func:`packed_value` packed."""
    where, _, value = packed.partition(_PLACE)
    partition, offset, timestamp = (int(number, 16) for number in where.split(b","))
    return value, LogPosition(partition=partition, offset=offset, timestamp=timestamp)


def offset_in(packed: bytes) -> SourceOffset:
    """The offset in a value that :func:`packed_value` packed."""
    return _values(packed[packed.index(_PLACE) + 1 :])


def _values(value: bytes) -> dict[str, OffsetValue]:
    return _text.raw_decode(value.decode("utf-8", "surrogatepass"))[0]


class PackedOffsets(OffsetsByNames):
    """A snapshot: the *tables* by the names of their partitions, and *others*, which are not packed.

    Owns both; they have no partition in common. May be read by several threads.
    """

    def __init__(
        self,
        tables: Mapping[Names, PackedTable],
        others: Mapping[SourcePartition, SourceOffset],
    ) -> None:
        self.tables = tables
        """Read-only."""
        self._others = others

    def __getitem__(self, partition: SourcePartition) -> SourceOffset:
        packed = packed_partition(partition)
        if packed is not None and (table := self.tables.get(packed[0])) is not None:
            value = table.get(packed[1])
            if value is not None:
                return offset_in(value)
        return self._others[partition]

    def __iter__(self) -> Iterator[SourcePartition]:
        yield from self._others
        for table in self.tables.values():
            yield from (unpacked_partition(key) for key, _ in table.items())

    def __len__(self) -> int:
        return len(self._others) + sum(map(len, self.tables.values()))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Mapping):
            return NotImplemented
        if self is other:
            return True
        if len(self) != len(other):
            return False
        return all(other.get(partition) == offset for partition, offset in self._unlike(other))

    __hash__ = None

    def of_names(self, names: frozenset[str]) -> PackedOffsets:
        """See :class:`~headrace.connect.partition.OffsetsByNames`."""
        return PackedOffsets(
            {order: table for order, table in self.tables.items() if names == frozenset(order)},
            {each: offset for each, offset in self._others.items() if names == frozenset(each)},
        )

    def pairs(self) -> Iterator[tuple[SourcePartition, SourceOffset]]:
        """See :class:`~headrace.connect.partition.Paired`."""
        yield from self._others.items()
        for table in self.tables.values():
            yield from ((unpacked_partition(key), offset_in(value)) for key, value in table.items())

    def _unlike(self, other: object) -> Iterator[tuple[SourcePartition, SourceOffset]]:
        """``pairs`` without some that *other* has as well: two snapshots mostly share their buckets."""
        theirs = other.tables if isinstance(other, PackedOffsets) else {}
        yield from self._others.items()
        for names, table in self.tables.items():
            for key, value in table.items_unlike(theirs.get(names)):
                yield unpacked_partition(key), offset_in(value)


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
    """The last offset of each source partition, whatever the bytes of its key and the partition of the topic.

    **One key in several partitions of the topic**, as after partitions were added: of its records,
    tombstones included, the one with the latest timestamp counts; but the one in the partition where
    Java's partitioner puts the key today takes precedence unless it is more than five minutes older. So
    the result depends neither on the order in which partitions are replayed, nor on small differences
    between clocks. Within a partition only the order of the log counts.

    **Several keys of one source partition**: others may write its fields in another order than we do. The
    record written last counts. A tombstone removes only what was stored under its own bytes, because
    nothing else is known about it once the topic has been compacted.

    There may be millions of source partitions. A partition with a single record, under our bytes, is
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
        """Apply one record; one that neither we nor Kafka Connect have written is logged and skipped."""
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
        """Apply records of a storage that keeps only their order, each after all earlier ones."""
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
        """The records of a source partition, which is not packed from now on."""
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
        """Note that all of the topic's *topic_partitions* have been read to their ends.

        A tombstone that was known at the previous call is forgotten if its key has no other record: by now
        all older records have been applied, in whatever partition they are.
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
                # Packed from now on, if possible.
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

    def differently_encoded(self, connector: str) -> Mapping[SourcePartition, SourceOffset]:
        """Those of ``known`` that are stored under other bytes than ours, alone or beside ours.

        Offsets that cannot be stored under our bytes, because of invalid text, are logged and left unchanged.
        """
        return {
            partition: _offset(standing)
            for partition, standing in self._standing(connector)
            if _is_differently_encoded(connector, partition, standing)
        }

    def entries_for(self, connector: str, offsets: Offsets) -> list[OffsetEntry]:
        """The records that store *offsets*, with tombstones for other bytes of the same partitions.

        The tombstones come last: a writer without transactions that dies in between leaves both forms, of
        which the newer counts, and never neither.
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
        # Names that share a bucket of Java's map are stored in the order in which they were inserted.
        packed = self._packed(connector, partition)
        return () if packed is None else (packed[0].whole(),)

    def _standing(self, connector: str) -> Iterator[tuple[SourcePartition, Mapping[bytes, _Form]]]:
        """The source partitions that have an offset, with the current record of each of their keys."""
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
    """Which of *rivals*, the records of *key* by their partition of the topic, is current. Pure."""
    latest = _latest(rivals.values())
    if len(rivals) == 1:
        return latest
    # Since the topic has its current number of partitions, writers send a key nowhere else.
    home = rivals.get(java_partition(key, topic_partitions))
    if home and home.place.timestamp >= latest.place.timestamp - _CLOCKS_DIFFER_MS:
        return home
    return latest


def _is_differently_encoded(
    connector: str, partition: SourcePartition, standing: Mapping[bytes, _Form]
) -> bool:
    try:
        if list(standing) == [encoded_key(connector, partition)]:
            return False
        encoded_value(_offset(standing))
    except ValueError as error:
        _LOG.warning(
            "An offset of connector %s is left under its original key: %s", connector, error
        )
        return False
    return True


def _offset(standing: Mapping[bytes, _Form]) -> SourceOffset:
    """The offset under the key that was written last; *standing* has no tombstones."""
    return cast("SourceOffset", decoded_value(_latest(standing.values()).value))


def _latest(forms: Iterable[_Form]) -> _Form:
    latest, *others = forms
    for form in others:
        if form.place.is_after(latest.place):
            latest = form
    return latest
