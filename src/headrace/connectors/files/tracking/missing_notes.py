"""Since when files are missing, as their entries say it: what one run has found counts in the next one."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet

from headrace.connect.partition import SourceOffset, SourcePartition
from headrace.connect.task import Offsets
from headrace.connectors.files.progress import MISSING, Progress, as_shown, number, whole
from headrace.connectors.files.tracking.marks import is_credible


class MissingNotes:
    """Writes notes and reads them, by a *clock* that tells seconds since 1970. Used by one thread."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self.has_more = False
        """Whether not all that is missing has its note."""

    def recalled(
        self, paths: Iterable[str], known: Mapping[str, Progress], *, now: float
    ) -> Iterator[tuple[str, float]]:
        """Each of *paths* that has a note, with the time of it: *now* is this moment by another clock."""
        now_ms = self._clock() * 1000
        for path in paths:
            at_ms = _noted_ms(known[path].entry)
            if at_ms is not None and at_ms <= now_ms:
                yield path, now - (now_ms - at_ms) / 1000

    def offsets(
        self,
        paths: Iterable[str],
        known: Mapping[str, Progress],
        *,
        but: AbstractSet[str],
        most: int,
    ) -> Offsets:
        """Notes for those of *paths* that have none, *but* some, *most* of them at a time."""
        found = dict[SourcePartition, SourceOffset | None]()
        self.has_more = False
        for path in paths:
            entry = known[path].entry
            if entry is None or path in but or not known[path].closed or self._is_noted(entry):
                continue
            if len(found) >= most:
                self.has_more = True
                break
            found[whole(path)] = {**entry, MISSING: int(self._clock() * 1000)}
        return found

    def _is_noted(self, entry: SourceOffset) -> bool:
        at_ms = _noted_ms(entry)
        # One from a clock that was wrong would hold for ever.
        return at_ms is not None and is_credible(at_ms, now_ms=self._clock() * 1000)


def without_notes(paths: Iterable[str], known: Mapping[str, Progress]) -> Offsets:
    """The entries of those of *paths*, which are there again, that have notes."""
    entries = ((path, known[path].entry) for path in paths if path in known)
    return {whole(path): as_shown(entry) for path, entry in entries if entry and MISSING in entry}


def _noted_ms(entry: SourceOffset | None) -> int | None:
    return number(entry, MISSING) if entry is not None and MISSING in entry else None
