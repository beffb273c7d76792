"""A connector's own offsets laid over those that it has in the worker's store. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from headrace.connect.partition import OffsetsByNames, SourceOffset, SourcePartition, of_names


class OverlaidOffsets(OffsetsByNames):
    """A snapshot: the offset of each source partition is its *own*, or else the one *below* (KIP-618)."""

    def __init__(
        self,
        own: Mapping[SourcePartition, SourceOffset],
        below: Mapping[SourcePartition, SourceOffset],
    ) -> None:
        self._own = own
        self._below = below
        self._length: int | None = None

    def __getitem__(self, partition: SourcePartition) -> SourceOffset:
        own = self._own.get(partition)
        return self._below[partition] if own is None else own

    def __iter__(self) -> Iterator[SourcePartition]:
        yield from self._own
        yield from (each for each in self._below if each not in self._own)

    def __len__(self) -> int:
        if self._length is None:
            self._length = len(self._own) + sum(each not in self._own for each in self._below)
        return self._length

    def of_names(self, names: frozenset[str]) -> OverlaidOffsets:
        """See :class:`~headrace.connect.partition.OffsetsByNames`."""
        return OverlaidOffsets(of_names(self._own, names), of_names(self._below, names))

    def pairs(self) -> Iterator[tuple[SourcePartition, SourceOffset]]:
        """See :class:`~headrace.connect.partition.Paired`."""
        yield from self._own.items()
        yield from (pair for pair in self._below.items() if pair[0] not in self._own)


def missing_below(
    own: Mapping[SourcePartition, SourceOffset], below: Mapping[SourcePartition, SourceOffset]
) -> dict[SourcePartition, SourceOffset]:
    """Those of *own* that are not, or not the same, *below*."""
    return {
        partition: offset for partition, offset in own.items() if below.get(partition) != offset
    }
