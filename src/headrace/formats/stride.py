"""How many rows are tried at once, so that bad ones among them cost no more than good ones; pure."""

from __future__ import annotations

from typing import Final

# So few rows are tried at least behind a bad one, because what is tried with the next one is tried again.
_FEW_ROWS: Final = 16
_GROWTH: Final = 4


class Stride:
    """Begins with *most* rows; behind a bad one it is about as many as were good before it, and grows again.

    So what is tried more than once is in proportion to what is read, wherever the bad rows are.
    """

    def __init__(self, most: int) -> None:
        self.rows = most
        """How many rows to try next."""
        self._most = most
        self._good = 0

    def passed(self, rows: int) -> None:
        """*rows* were tried, and none of them was bad."""
        self._good += rows
        self.rows = min(self.rows * _GROWTH, self._most)

    def failed(self, good: int) -> None:
        """A bad row was found behind *good* ones."""
        self.rows = min(max(2 * (self._good + good), _FEW_ROWS), self._most)
        self._good = 0
