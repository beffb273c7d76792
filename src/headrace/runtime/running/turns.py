"""What slots have the driver do for them: of each slot one thing at a time, and nothing that was overtaken."""

from __future__ import annotations

import threading


class Turns:
    """Of one micro-batch's slots, by their tokens. *changed* is the micro-batch's, and is held in every call.

    A slot numbers its requests upwards and asks for one after another. So one that comes behind a newer one is one
    that the slot has given up, and it may have asked for the opposite since.
    """

    def __init__(self, changed: threading.Condition) -> None:
        self._changed = changed
        self._taken: set[str] = set()
        self._last: dict[str, int] = {}

    def wait_for(self, token: str) -> None:
        """Wait, with the lock let go, until nothing is being done for *token*."""
        self._changed.wait_for(lambda: token not in self._taken)

    def wait_for_all(self) -> None:
        """Wait, with the lock let go, until nothing is being done: as long as what is done may take."""
        self._changed.wait_for(lambda: not self._taken)

    def take(self, token: str, number: int) -> bool:
        """Begin with request *number* of *token*, for which nothing is being done; ``False`` when it was overtaken."""
        if number <= self._last.get(token, 0):
            return False
        self._last[token] = number
        self._taken.add(token)
        return True

    def give_back(self, token: str) -> None:
        """End what is being done for *token*."""
        self._taken.remove(token)
        self._changed.notify_all()
