"""One listing of a place, which may serve several rounds: where one round is full, the next one goes on there."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final

from headrace.connect.partition import OffsetReader, SourceOffset
from headrace.connect.task import Offsets
from headrace.connectors.files.candidate import Decision
from headrace.connectors.files.progress import KnownFiles, Progress, path_of
from headrace.connectors.files.selecting.selection import Selection
from headrace.connectors.files.tracking.asked import Asked
from headrace.connectors.files.tracking.tracked_listing import TrackedListing
from headrace.connectors.files.tracking.tracking import Tracking
from headrace.sources.sharing import Piece

LONGEST_SECONDS: Final = 600.0
"""For so long a listing goes on: what comes late and sorts before its place waits for the next one."""


class ResumableListing:
    """From the first name to the last one. Used by one plan after the other; made by :class:`Listings`."""

    def __init__(self, tracked: TrackedListing, asked: Asked, *, began_at: float) -> None:
        self.asked = asked
        self.began_at = began_at
        self._tracked = tracked
        self._decisions = tracked.decisions(asked)
        self._given_back: Sequence[tuple[str, Decision]] = ()
        self._is_first = True
        self._is_full = False
        self._next = ""
        self._taken: Mapping[str, SourceOffset | None] = {}

    def decisions(self) -> Iterator[tuple[str, Decision]]:
        """What is left of them; whoever has enough gives the last one back, and may stop."""
        first, self._given_back = self._given_back, ()
        # A chain does not end what it chains when it is let go, as a generator would.
        return itertools.chain(first, self._decisions)

    def give_back(self, path: str, decision: Decision) -> None:
        """The round is full: *decision* is the first one for the next round."""
        self._given_back = ((path, decision),)
        self._next = path
        self._is_full = True

    def unfinished(self) -> Sequence[str]:
        """Behind the decisions: what was begun and has not been listed, looked for in its first round and behind its last one."""
        return self.asked.unfinished() if self._is_first or not self._is_full else ()

    def offsets(self, *, is_idle: bool) -> Offsets:
        """See :meth:`~headrace.connectors.files.tracking.tracked_listing.TrackedListing.offsets`."""
        return self._tracked.offsets(is_idle=is_idle)

    def took(self, pieces: Sequence[Piece]) -> bool:
        """The round reads *pieces*; whether another one may go on behind them."""
        if not (self._is_full and self._tracked.spans_rounds):
            return False
        paths = (path_of(each.split.partition) for each in pieces)
        self._taken = {path: self.asked.known.get(path, _NEW).entry for path in paths}
        return True

    def goes_on(self, known: KnownFiles) -> bool:
        """Begin another round, with what is *known* by now; whether all that the last one took was read to its end.

        What was not is to be read first, so that order holds.
        """
        as_decided = known.get(self._next, _NEW) == self.asked.known.get(self._next, _NEW)
        self._is_first = self._is_full = False
        self.asked.go_on(known)
        return as_decided and all(
            _is_read(known.get(path, _NEW), before) for path, before in self._taken.items()
        )


class Listings:
    """One for each start of a connector. Used by its thread; *ticks* tells seconds that only rise."""

    def __init__(
        self, tracking: Tracking, selection: Selection, *, ticks: Callable[[], float]
    ) -> None:
        self._tracking = tracking
        self._selection = selection
        self._ticks = ticks
        self._kept: ResumableListing | None = None

    def going_on(self, known: KnownFiles) -> ResumableListing | None:
        """The listing that the last plan has not finished, where the next one may go on with it."""
        kept, self._kept = self._kept, None
        if kept is None or self._ticks() - kept.began_at > LONGEST_SECONDS:
            return None
        if not kept.goes_on(known):
            return None
        self._selection.forget_markers()
        return kept

    def begun(self, offsets: OffsetReader, known: KnownFiles) -> ResumableListing:
        """A new one."""
        asked = Asked(known)
        tracked = self._tracking.tracked(offsets, asked)
        return ResumableListing(tracked, asked, began_at=self._ticks())

    def keep(self, listing: ResumableListing, pieces: Sequence[Piece]) -> None:
        """A plan is made that reads *pieces*: keep *listing* for the next one, where that may go on with it."""
        self._kept = listing if listing.took(pieces) else None


def _is_read(progress: Progress, before: SourceOffset | None) -> bool:
    # A file in ranges is not done before a plan has made one offset of theirs.
    closed = progress.done or progress.quarantined is not None
    return closed and progress.entry != before


_NEW: Final = Progress()
