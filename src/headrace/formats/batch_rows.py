"""How many rows of a columnar file to read at once, so that memory stays bounded."""

from __future__ import annotations

# What a footer says of packed bytes may be far less than what comes out of them, so the first batch is
# small, and what it weighed decides about the next one.
_FIRST = 64
_GROWTH = 8
_SLACK = 2


class BatchRows:
    """Learns how large rows are: batches grow to about *target_bytes*, and to *most* rows at most."""

    def __init__(self, *, most: int, target_bytes: int) -> None:
        self._most = most
        self._target = target_bytes
        self.rows = min(_FIRST, most)
        """How many rows to read next."""

    def expect(self, row_bytes: int) -> None:
        """The next rows have at least about *row_bytes*; called before each row group."""
        self.rows = max(1, min(self.rows, self._target // max(1, row_bytes)))

    def seen(self, rows: int, nbytes: int) -> None:
        """A batch of *rows* rows had *nbytes* in memory."""
        fitting = self._target * rows // max(1, nbytes)
        self.rows = max(1, min(self._most, self.rows * _GROWTH, fitting))

    def fit(self, rows: int, nbytes: int) -> int:
        """How many rows of such a batch to hand on at once: fewer when it became much too large."""
        if nbytes > self._target * _SLACK:
            rows = max(1, rows * self._target // nbytes)
        return min(rows, self._most)
