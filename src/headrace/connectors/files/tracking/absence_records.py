"""For how long files have been missing, as their entries say it: what one run has found counts in the next one."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping

from headrace.connect.partition import SourceOffset, SourcePartition
from headrace.connect.task import Offsets
from headrace.connectors.files.progress import MISSED, MISSING, Progress, number, whole
from headrace.connectors.files.tracking.marks import is_credible
from headrace.connectors.files.tracking.missing import Recalled


class AbsenceRecords:
    """Writes notes and reads them, by a *clock* that tells seconds since 1970. Used by one thread.

    Between two runs *most_seconds* count at most: the clock may have been wrong in one of them.
    """

    def __init__(self, clock: Callable[[], float], *, most_seconds: float) -> None:
        self._clock = clock
        self._most_seconds = most_seconds

    def recalled(self, paths: Iterable[str], known: Mapping[str, Progress]) -> Iterator[Recalled]:
        """What the notes of *paths* say, where there are any; one of the future says nothing."""
        now_ms = self._clock() * 1000
        for path in paths:
            entry = known[path].entry
            if entry is None or MISSING not in entry:
                continue
            at_ms = number(entry, MISSING)
            if not is_credible(at_ms, now_ms=now_ms):
                continue
            between = min(max(0.0, now_ms - at_ms) / 1000, self._most_seconds)
            yield Recalled(path=path, earlier=number(entry, MISSED) / 1000, between=between)

    def offsets(
        self, observed: Iterable[tuple[str, float]], known: Mapping[str, Progress]
    ) -> Offsets:
        """Notes for paths, each with the seconds for which runs have missed it, so far as they may be forgotten."""
        found = dict[SourcePartition, SourceOffset | None]()
        at_ms = int(self._clock() * 1000)
        for path, seconds in observed:
            progress = known[path]
            if progress.entry is not None and progress.closed:
                missed = {MISSING: at_ms, MISSED: int(seconds * 1000)}
                found[whole(path)] = {**progress.entry, **missed}
        return found
