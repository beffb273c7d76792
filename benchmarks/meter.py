"""Watches the processes of a program while it runs."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence

from benchmarks.process_tree import (
    PAGE_BYTES,
    TICKS_PER_SECOND,
    command_of,
    read_tree,
    shared_bytes,
)
from benchmarks.usage import NeverBack, Reading, Usage
from headrace.pids import Stat, read_stat

EVERY_SECONDS = 0.1
# Reading all processes of the machine costs more than reading a few; children that come and go in
# between are in their parent's account.
ROUNDS_PER_SEARCH = 5


class Meter:
    """Samples *roots* and everything below them, on a thread of its own, from ``start`` to ``stop``.

    A process is a slot when it and its parent were both started by a command with *slot_marker* in it:
    the workers that Spark's Python daemon forks. Without a marker every root is a slot. Memory that processes share is
    counted once in the sum, and in full for a slot.
    """

    def __init__(self, roots: Sequence[int], *, slot_marker: str | None = None) -> None:
        self._roots = roots
        self._marker = slot_marker
        self._readings: list[Reading] = []
        self._cpu = NeverBack()
        self._members: set[int] = set(roots)
        self._slots: set[int] = set()
        self._shared: dict[int, int] = {}
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="meter", daemon=True)

    def start(self) -> Meter:
        """Begin to watch."""
        self._thread.start()
        return self

    def stop(self) -> Usage:
        """What was seen."""
        self._over.set()
        self._thread.join()
        return Usage(self._readings)

    def _watch(self) -> None:
        rounds = 0
        while not self._over.is_set():
            if rounds % ROUNDS_PER_SEARCH == 0:
                self._search()
            self._read()
            rounds += 1
            self._over.wait(EVERY_SECONDS)

    def _search(self) -> None:
        # A process whose parent died is no descendant any more, but still one of the program's.
        self._members |= read_tree(self._members)
        self._slots = set(self._roots) if self._marker is None else self._marked(self._marker)
        # A page table of some hundred megabytes takes milliseconds to walk.
        self._shared = {pid: shared_bytes(pid) for pid in self._members}

    def _marked(self, marker: str) -> set[int]:
        stats = {pid: read_stat(pid) for pid in self._members}
        commands = {pid: command_of(pid) for pid in self._members}
        return {
            pid
            for pid, stat in stats.items()
            if stat and marker in commands[pid] and marker in commands.get(stat.parent, "")
        }

    def _read(self) -> None:
        at = time.time()
        stats = [stat for stat in map(read_stat, self._members) if stat is not None]
        self._members = {stat.pid for stat in stats}
        ticks = sum(stat.ticks for stat in stats)
        self._readings.append(
            Reading(
                at=at,
                cpu_seconds=self._cpu.total(ticks / TICKS_PER_SECOND),
                rss_bytes=_bytes(stats) - sum(self._shared.get(stat.pid, 0) for stat in stats),
                slot_rss_bytes=max(
                    (_bytes([stat]) for stat in stats if stat.pid in self._slots), default=0
                ),
            )
        )


def _bytes(stats: Sequence[Stat]) -> int:
    return sum(stat.rss_pages for stat in stats) * PAGE_BYTES
