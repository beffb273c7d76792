"""What sorts up to a mark, which counts as read: passed over, or told to be too late."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from headrace.connectors.files.progress import Progress
from headrace.connectors.files.tracking.marks import Mark

_PASSED: Final = "Its name does not sort behind the mark of files.tracking=ordered ({mark}), so that it counts as read."
TOO_LATE: Final = (
    "too_late: Its name does not sort behind the mark of files.tracking=ordered ({mark}), so that it counts as "
    "read, but it was changed after all that the mark has passed: it came late, or was changed after it was read. "
    "To have it read, give it a name that sorts behind the mark; what was read of it before is then sent again."
)


class BelowMark:
    """Passes over what *mark* covers.

    The mark is of *place*, as all paths there begin; an entry in *known* outranks it. With *lists_all* nothing is
    left out of the listing, and what is too late at *now_ms* is counted; without, a listing may begin behind the
    mark. One for each listing.
    """

    def __init__(
        self,
        mark: Mark,
        known: Mapping[str, Progress],
        *,
        place: str,
        lists_all: bool,
        now_ms: float,
    ) -> None:
        self.mark = mark
        self.place = place
        self.lists_all = lists_all
        self.too_late = 0
        self.first_too_late = ""
        self._known = known
        self._now_ms = now_ms

    @property
    def start_after(self) -> str:
        """The mark's key, or a name before the first file below the mark that is to be read; empty for all."""
        if self.lists_all or not self.mark.key:
            return ""
        asked = (
            path
            for path, each in self._known.items()
            if path.startswith(self.place) and not each.closed
        )
        first = min(asked, default=None)
        # What is a name without its last character sorts before it.
        return self.mark.key if first is None else min(self.mark.key, first[:-1])

    def wants_time(self, path: str) -> bool:
        """See :class:`~headrace.connectors.files.selecting.observing.ListingObserver`."""
        return self.lists_all and self.mark.covers(path)

    def passed(self, path: str, modified_ms: int | None) -> str | None:
        """See :class:`~headrace.connectors.files.selecting.observing.ListingObserver`."""
        if not self.mark.covers(path) or path in self._known:
            return None
        if not self.mark.is_too_late(modified_ms, now_ms=self._now_ms):
            return _PASSED.format(mark=self.mark.key)
        self.too_late += 1
        self.first_too_late = self.first_too_late or path
        return TOO_LATE.format(mark=self.mark.key)
