"""Source partitions as Aiven's S3 source names them, and as ``files`` does. Pure.

The original's map iterates in an order that changes from one start to the next, so that its offsets topic may
hold one partition under two keys; the offset store takes both for the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from headrace.connect.partition import (
    KnownOffsets,
    OffsetsByNames,
    OffsetValue,
    SourceOffset,
    SourcePartition,
    of_names,
)
from headrace.connectors.files.progress import BUCKET, FILENAME, OBJECT_KEY, path_of
from headrace.connectors.files.selecting.addresses import Root, root_of

_SCHEME: Final = "s3"


def as_theirs(partition: SourcePartition) -> SourcePartition:
    """*partition*, which names an object of S3 by its address, under bucket and key; any other as it is."""
    found = root_of(str(partition.get(FILENAME)))
    if found is None or found[0].scheme != _SCHEME:
        return partition
    root, selector = found
    return SourcePartition({BUCKET: root.place, OBJECT_KEY: selector.text, **_rest(partition)})


def as_ours(partition: SourcePartition) -> SourcePartition | None:
    """*partition*, which names bucket and key, by its address; ``None`` when it names something else."""
    bucket, key = partition.get(BUCKET), partition.get(OBJECT_KEY)
    if not isinstance(bucket, str) or not isinstance(key, str):
        return None
    path = Root(scheme=_SCHEME, place=bucket).address(key)
    return SourcePartition({FILENAME: path, **_rest(partition)})


def _rest(partition: SourcePartition) -> dict[str, OffsetValue]:
    return {k: v for k, v in partition.items() if k not in (FILENAME, BUCKET, OBJECT_KEY)}


class KnownByAddress:
    """*theirs*, by the partitions that ``files`` has. See :class:`~headrace.connect.partition.KnownOffsets`."""

    def __init__(self, theirs: KnownOffsets) -> None:
        self._theirs = theirs

    def offset(self, partition: SourcePartition) -> SourceOffset | None:
        """See :class:`~headrace.connect.partition.OffsetReader`."""
        return self._theirs.offset(as_theirs(partition))

    def offsets(
        self, partitions: Iterable[SourcePartition]
    ) -> Mapping[SourcePartition, SourceOffset | None]:
        """See :class:`~headrace.connect.partition.OffsetReader`."""
        by_address = {as_theirs(each): each for each in partitions}
        return {
            by_address[each]: offset for each, offset in self._theirs.offsets(by_address).items()
        }

    def known(self) -> Mapping[SourcePartition, SourceOffset]:
        """See :class:`~headrace.connect.partition.KnownOffsets`."""
        return _ByAddress(self._theirs.known())


class _ByAddress(OffsetsByNames):
    """Makes each partition when it is asked for: there may be millions. Others than theirs are left out."""

    def __init__(self, theirs: Mapping[SourcePartition, SourceOffset]) -> None:
        self._theirs = theirs

    def __getitem__(self, partition: SourcePartition) -> SourceOffset:
        return self._theirs[as_theirs(partition)]

    def __iter__(self) -> Iterator[SourcePartition]:
        return (ours for ours, _ in self.pairs())

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def of_names(self, names: frozenset[str]) -> Mapping[SourcePartition, SourceOffset]:
        """See :class:`~headrace.connect.partition.OffsetsByNames`."""
        if FILENAME not in names:
            return {}
        return _ByAddress(of_names(self._theirs, names - {FILENAME} | {BUCKET, OBJECT_KEY}))

    def pairs(self) -> Iterator[tuple[SourcePartition, SourceOffset]]:
        """See :class:`~headrace.connect.partition.Paired`."""
        for each, offset in self._theirs.items():
            ours = as_ours(each)
            if ours is not None:
                yield ours, offset


def key_of(partition: SourcePartition) -> str:
    """The key of the object that *partition*, in either form, names."""
    found = root_of(path_of(partition))
    return "" if found is None else found[1].text
