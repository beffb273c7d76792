"""Which objects this task has begun or finished, until the offsets topic says so as well."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from typing import Generic

from headrace.connect.partition import SourcePartition
from headrace.sources.keys import K
from headrace.sources.unfinished import Unfinished


class Ledger(Generic[K]):
    """Keeps an object from being read twice by one task, whatever its look-back is.

    Committed offsets are seen as of the task's start, so an object stays here as long as a listing may
    show it again, and as long as it is *unfinished*. Used by the reading thread; :meth:`confirm` by the
    task's own.
    """

    def __init__(self, unfinished: Unfinished[K]) -> None:
        self._unfinished = unfinished
        self._held = dict[SourcePartition, tuple[K, str | None]]()
        self._confirmed = deque[SourcePartition]()

    def __contains__(self, partition: SourcePartition) -> bool:
        return partition in self._held

    def __len__(self) -> int:
        return len(self._held)

    def key_of(self, partition: SourcePartition) -> K | None:
        """The native key of an object that is held; called by the task's own thread, too."""
        held = self._held.get(partition)
        return held and held[0]

    def version_of(self, partition: SourcePartition) -> str | None:
        """The version of an object that is held, if it is known."""
        held = self._held.get(partition)
        return held and held[1]

    def hold(self, partition: SourcePartition, key: K, version: str | None) -> None:
        """The object is being read in this *version*, or has been."""
        self._held[partition] = key, version

    def confirm(self, partitions: Iterable[SourcePartition]) -> None:
        """The commits that cover the last records of these objects have happened."""
        self._confirmed.extend(partitions)

    def forget_before(self, start: K | None) -> None:
        """The next listing begins at *start*: forget what is committed and cannot be listed again."""
        if start is None:
            return
        for _ in range(len(self._confirmed)):
            partition = self._confirmed.popleft()
            held = self._held.get(partition)
            if held is not None and held[0] < start and partition not in self._unfinished:
                del self._held[partition]
            elif held is not None:
                self._confirmed.append(partition)
