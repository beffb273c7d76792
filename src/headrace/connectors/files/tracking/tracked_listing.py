"""One listing: what is decided about each file, and what is to be remembered then."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Protocol

from headrace.connect.task import Offsets
from headrace.connectors.files.candidate import Decision
from headrace.connectors.files.progress import Progress
from headrace.connectors.files.selecting.observing import ListingObserver
from headrace.connectors.files.selecting.scope import Failed, LeftOut, fail, unheard
from headrace.connectors.files.selecting.selection import Selection


class ListingTracker(ListingObserver, Protocol):
    """Is shown all that is listed and decided, and says behind the listing what is to be remembered."""

    def decided(self, path: str, decision: Decision) -> None:
        """The file at *path* is there, and *decision* says what is done with it."""
        ...

    def left_out(self, path: str) -> None:
        """There is something at *path*, and it is not selected; not told in any order."""
        ...

    def ended(self) -> None:
        """The listing has come to its end; not called where the plan has had enough before."""
        ...

    @property
    def is_through(self) -> bool:
        """Behind the listing: whether all names up to the mark have been listed, so far as they can be."""
        ...

    def offsets(self, *, is_idle: bool) -> Offsets:
        """Behind the listing: entries that are of no use any more, and the mark where it moves.

        *is_idle* says that the plan has nothing else to do.
        """
        ...


class TrackedListing:
    """What *selection* lists once, as *tracker* lets it, and what plans are to write about that.

    *listed* is called when all names up to the mark have been listed. *spans_rounds*: several plans may share
    the listing. With a mark each of them begins there again.
    """

    def __init__(
        self,
        selection: Selection,
        tracker: ListingTracker,
        listed: Callable[[], None],
        *,
        spans_rounds: bool,
    ) -> None:
        self.spans_rounds = spans_rounds
        self._selection = selection
        self._tracker = tracker
        self._listed = listed

    def decisions(
        self,
        known: Mapping[str, Progress],
        *,
        left_out: LeftOut = unheard,
        failed: Failed = fail,
    ) -> Iterator[tuple[str, Decision]]:
        """See :class:`~headrace.connectors.files.selecting.selection.Selection`."""

        def is_left_out(path: str, reason: str) -> None:
            self._tracker.left_out(path)
            left_out(path, reason)

        listed = self._selection.decisions(
            known, left_out=is_left_out, failed=failed, observer=self._tracker
        )
        for path, decision in listed:
            self._tracker.decided(path, decision)
            yield path, decision
        self._tracker.ended()

    def has_lost(self, path: str) -> bool:
        """See :class:`~headrace.connectors.files.selecting.selection.Selection`."""
        return self._selection.has_lost(path)

    def offsets(self, *, is_idle: bool) -> Offsets:
        """After the listing: what is of no use any more, as tombstones, and the mark where it moves.

        *is_idle* says that the plan has nothing else to do.
        """
        offsets = self._tracker.offsets(is_idle=is_idle)
        if self._tracker.is_through:
            self._listed()
        return offsets
