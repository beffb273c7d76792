"""All offsets of one connector, packed, and unpacked when they are asked for. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from headrace.connect.partition import OffsetsByNames, SourceOffset, SourcePartition
from headrace.storage.packed_offset import (
    Names,
    offset_in,
    packed_partition,
    unpacked_partition,
)
from headrace.storage.packed_table import PackedTable


class PackedOffsets(OffsetsByNames):
    """A snapshot: the *tables* by the names of their partitions, and *others*, which are not packed.

    Owns both; no partition is in both. May be read by several threads.
    """

    def __init__(
        self,
        tables: Mapping[Names, PackedTable],
        others: Mapping[SourcePartition, SourceOffset],
    ) -> None:
        self.tables = tables
        """Not to be changed."""
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
        """Those of the pairs that *other* may not have: one snapshot mostly has the bytes of the other."""
        theirs = other.tables if isinstance(other, PackedOffsets) else {}
        yield from self._others.items()
        for names, table in self.tables.items():
            for key, value in table.items_unlike(theirs.get(names)):
                yield unpacked_partition(key), offset_in(value)
