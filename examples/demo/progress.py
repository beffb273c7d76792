"""The line of progress: records, bytes, rate, and what is left."""

from __future__ import annotations

from collections import deque

from landing import Landed

# Commits come once a second; a shorter look would jump between nothing and much.
_LOOK_BACK_SECONDS = 3.0
_BAR = 20


class Progress:
    """Makes lines from what has landed of *total* records."""

    def __init__(self, total: int) -> None:
        self._total = total
        self._seen = deque[tuple[float, int]]()

    def line(self, landed: Landed, now: float) -> str:
        """The line at the moment *now*."""
        share = landed.records / self._total
        bar = "#" * round(share * _BAR)
        return (
            f"  [{bar:.<{_BAR}}] {share:4.0%}  {landed.records:,} records  "
            f"{megabytes(landed.bytes)}  {self._rate(landed.records, now):,.0f}/s  "
            f"{self._total - landed.records:,} left"
        )

    def _rate(self, records: int, now: float) -> float:
        self._seen.append((now, records))
        while self._seen[0][0] < now - _LOOK_BACK_SECONDS:
            self._seen.popleft()
        then, before = self._seen[0]
        return (records - before) / (now - then) if now > then else 0.0


def megabytes(size: int) -> str:
    """*size* bytes for people."""
    return f"{size / 1e6:.1f} MB"
