"""When a source partition that was read to its end may be marked so: with the commit of its last record."""

from __future__ import annotations

from headrace.connect.errors import RecordError
from headrace.connect.partition import SourceOffset, SourcePartition
from headrace.connect.task import Offsets


class CompletionTracker:
    """Final offsets that wait for the commit that covers all before them. Used by one thread."""

    def __init__(self) -> None:
        self._last = dict[SourcePartition, SourceOffset]()
        self._covered = set[SourcePartition]()
        self._ends = dict[SourcePartition, SourceOffset]()

    def sent(self, partition: SourcePartition, offset: SourceOffset) -> None:
        """A batch that ends at *offset* was returned; an end before it was none, the object begins again."""
        self._last[partition] = offset
        self._ends.pop(partition, None)
        self._covered.discard(partition)

    def passed(self, error: RecordError) -> None:
        """A record that cannot be read is raised; what comes next is behind it, if it can be passed over."""
        if error.bad is not None:
            self.sent(error.bad.source_partition, error.bad.source_offset or {})

    def ended(self, partition: SourcePartition, offset: SourceOffset) -> None:
        """Nothing comes after what was sent of *partition*, and *offset* says so."""
        if self._last.get(partition) != offset:
            self._ends[partition] = offset

    def due(self, offsets: Offsets) -> Offsets | None:
        """What to write with the commit of *offsets*: the ends of partitions that it completes."""
        self._covered |= {
            partition
            for partition, offset in offsets.items()
            if self._last.get(partition) == offset
        }
        due = {
            partition: end
            for partition, end in self._ends.items()
            if partition in self._covered or (partition not in self._last)
        }
        self._ends = {key: end for key, end in self._ends.items() if key not in due}
        return due or None
