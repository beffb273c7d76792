"""How a connector remembers what it has read: by object, or in order up to a mark."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from headrace.connect.partition import OffsetReader
from headrace.connect.reread_commands import set_command
from headrace.connectors.files.config import FilesConfig
from headrace.connectors.files.progress import whole
from headrace.connectors.files.rereading import FROM_BEGINNING
from headrace.connectors.files.selecting.selection import EventListener, Selection
from headrace.connectors.files.tracking.asked import Asked
from headrace.connectors.files.tracking.below_mark import BelowMark
from headrace.connectors.files.tracking.marks import Mark, mark_of, mark_partition, place_of
from headrace.connectors.files.tracking.ordering import OrderedTracker, Ordering
from headrace.connectors.files.tracking.retention import ObjectTracker, OffsetRetention
from headrace.connectors.files.tracking.tracked_listing import ListingTracker, TrackedListing

_SETTING, _CHECK = "files.tracking", "files.late.check.ms"
_HONOURED: Final = (
    "files.tracking=ordered has left a mark at {mark}. What sorts up to it and has no offset of its own counts "
    "as read; the mark does not move any more. To have all of that read again, stop the connector, remove "
    "the mark ({command}) and resume it."
)
_TOO_LATE: Final = (
    "too_late={count}: So many files have names that sort up to the mark {mark} but were changed after all that it "
    "has passed. They came late and are not read, or were changed after they were read. Give those that came late "
    "names that sort behind it, or raise files.lookback for those that will come; one that was read is sent again "
    "under another name. The first one is {first}: to have it read where it is, stop the connector, give it an offset "
    "({command}) and resume it."
)


class Tracking:
    """One for each start of a connector. Used by its thread; *ticks* tells seconds that only rise, *clock* those since 1970."""

    def __init__(
        self,
        config: FilesConfig,
        selection: Selection,
        *,
        ticks: Callable[[], float],
        clock: Callable[[], float],
        tell: EventListener,
    ) -> None:
        self._selection = selection
        self._root = config.root
        self._tell = tell
        self._ticks = ticks
        self._clock = clock
        self._check_seconds = config.late_check_ms / 1000
        self._check_at = ticks() if config.late_check_ms else float("inf")
        self._retention = OffsetRetention(config, selection, ticks=ticks, clock=clock)
        self._ordering = (
            Ordering(config, ticks=ticks, clock=clock) if config.tracking == "ordered" else None
        )

    def tracked(self, offsets: OffsetReader, asked: Asked) -> TrackedListing:
        """The next listing, which asks for what is known by *asked*."""
        mark = self._mark(offsets)
        if self._ordering is None and mark.key:
            command = set_command(mark_partition(self._root), None)
            self._tell(_SETTING, _HONOURED.format(mark=mark.key, command=command))
        return self._listing(mark, asked, lists_all=self._ticks() >= self._check_at)

    def explained(self, offsets: OffsetReader, asked: Asked) -> TrackedListing:
        """One that lists everything."""
        return self._listing(self._mark(offsets), asked, lists_all=True)

    def _listing(self, mark: Mark, asked: Asked, *, lists_all: bool) -> TrackedListing:
        below = self._below(mark, asked, lists_all=lists_all)
        return TrackedListing(
            self._selection,
            self._tracker(below, asked),
            lambda: self._checked(below),
            spans_rounds=self._ordering is None and not mark.key,
        )

    def _mark(self, offsets: OffsetReader) -> Mark:
        partition = mark_partition(self._root)
        return mark_of(offsets.offset(partition), partition)

    def _below(self, mark: Mark, asked: Asked, *, lists_all: bool) -> BelowMark:
        return BelowMark(
            mark,
            asked.known,
            place=place_of(self._root),
            lists_all=lists_all,
            now_ms=self._clock() * 1000,
        )

    def _tracker(self, below: BelowMark, asked: Asked) -> ListingTracker:
        if self._ordering is None:
            return ObjectTracker(below, asked, self._retention)
        return OrderedTracker(below, asked, self._ordering)

    def _checked(self, below: BelowMark) -> None:
        """A listing in which *below* was heeded has shown all names up to the mark."""
        if not below.lists_all:
            return
        self._check_at = self._ticks() + self._check_seconds
        if below.too_late:
            told = _TOO_LATE.format(
                count=below.too_late,
                mark=below.mark.key,
                first=below.first_too_late,
                command=set_command(whole(below.first_too_late), FROM_BEGINNING),
            )
            self._tell(_CHECK, told)
