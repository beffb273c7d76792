"""Objects that may have to be read although a listing begins behind them."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping
from typing import Generic

from headrace.connect.partition import SourcePartition
from headrace.sources.keys import K


class Unfinished(Generic[K]):
    """Objects in quarantine, and those whose entries are neither this nor done, until they are done.

    A whole object may be put in the place of one of them at any time. The reading thread and the task's own
    use it both.
    """

    def __init__(self, known: Mapping[SourcePartition, K]) -> None:
        self._keys = dict(known)
        self._lock = threading.Lock()

    def __contains__(self, partition: SourcePartition) -> bool:
        return partition in self._keys

    def add(self, partition: SourcePartition, key: K) -> None:
        """The object of *key* is read no further."""
        with self._lock:
            self._keys[partition] = key

    def remove(self, partitions: Iterable[SourcePartition]) -> None:
        """These are done, or of no concern to this task."""
        with self._lock:
            for partition in partitions:
                self._keys.pop(partition, None)

    def before(self, start: K) -> list[K]:
        """The keys that sort before *start*, in order."""
        with self._lock:
            return sorted(key for key in self._keys.values() if key < start)

    def reaches(self, key: K) -> bool:
        """Whether one of them does not sort behind *key*."""
        with self._lock:
            return any(not key < each for each in self._keys.values())
