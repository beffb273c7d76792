"""Whether offsets that a person sets can have the effect that is meant, below a mark."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from headrace.connect.errors import OffsetsError
from headrace.connect.partition import OffsetReader, SourceOffset, SourcePartition
from headrace.connect.task import Offsets
from headrace.connectors.files.progress import FILENAME, whole
from headrace.connectors.files.selecting.addresses import root_of
from headrace.connectors.files.tracking.marks import MARK, Mark, mark_of, mark_partition


class NoOffsets:
    """An :class:`~headrace.connect.partition.OffsetReader` that knows of none."""

    def offset(self, partition: SourcePartition) -> SourceOffset | None:
        """See :class:`~headrace.connect.partition.OffsetReader`."""
        return None

    def offsets(
        self, partitions: Iterable[SourcePartition]
    ) -> Mapping[SourcePartition, SourceOffset | None]:
        """See :class:`~headrace.connect.partition.OffsetReader`."""
        return dict.fromkeys(partitions)


def check_below_mark(offsets: Offsets, stored: OffsetReader) -> None:
    """Raise :class:`~headrace.connect.errors.OffsetsError` where removing an entry would not have its file read.

    An entry that is removed stands for a file that was never read, but what sorts up to a mark counts as read
    without one. So it is with a range, unless the file gets an entry for the whole. The marks are those of
    *offsets*, else those that are *stored*.
    """
    marks = dict[SourcePartition, Mark]()
    for partition, offset in offsets.items():
        path = partition.get(FILENAME)
        if offset is not None or not isinstance(path, str) or offsets.get(whole(path)):
            continue
        of = _mark_partition_of(path)
        if of not in marks:
            marks[of] = mark_of(offsets[of] if of in offsets else stored.offset(of), of)
        if marks[of].covers(path):
            raise OffsetsError(
                f"Without an offset {path} would not be read again: it does not sort behind the mark "
                f"{marks[of].key}, up to which all counts as read. To have it read again, set its offset to "
                '{"recordCount": 0}.'
            )


def removed_marks(offsets: Offsets) -> Iterator[str]:
    """The places whose marks *offsets* remove."""
    return (
        str(partition[MARK])
        for partition, offset in offsets.items()
        if offset is None and MARK in partition
    )


def _mark_partition_of(path: str) -> SourcePartition:
    found = root_of(path)
    return mark_partition(found and found[0])
