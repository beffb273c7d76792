"""How many slots are free: a micro-batch starts only when all its slots fit."""

from __future__ import annotations

import threading
from collections.abc import Callable

_LOOK_SECONDS = 0.2


class Capacity:
    """Slots shared by the connectors of one worker; used from their threads.

    First come, first served: a large micro-batch is not starved by small ones that arrive later.
    """

    def __init__(self, slots: int) -> None:
        self.slots = slots
        self._free = slots
        self._queue: list[object] = []
        self._changed = threading.Condition()

    def take(self, count: int, *, give_up: Callable[[], bool]) -> bool:
        """Take *count* slots when they are free; ``False`` when *give_up* said so before.

        Raises ``ValueError`` when there are fewer than *count* slots in all.
        """
        if count > self.slots:
            raise ValueError(f"{count} slots are asked for, but there are only {self.slots}.")
        place = object()
        with self._changed:
            self._queue.append(place)
            try:
                while not (self._queue[0] is place and self._free >= count):
                    if give_up():
                        return False
                    self._changed.wait(_LOOK_SECONDS)
                self._free -= count
                return True
            finally:
                self._queue.remove(place)
                self._changed.notify_all()

    def give_back(self, count: int) -> None:
        """Return *count* slots."""
        with self._changed:
            self._free += count
            self._changed.notify_all()

    def others_wait(self) -> bool:
        """Whether a micro-batch is waiting for slots."""
        with self._changed:
            return bool(self._queue)
