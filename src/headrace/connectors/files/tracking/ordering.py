"""One mark for all that is read: it follows the files that are done, in the order of names."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

from headrace.connect.partition import SourceOffset, SourcePartition
from headrace.connect.task import Offsets
from headrace.connectors.files.candidate import Decision
from headrace.connectors.files.config import FilesConfig
from headrace.connectors.files.progress import whole
from headrace.connectors.files.tracking.asked import Asked
from headrace.connectors.files.tracking.below_mark import BelowMark
from headrace.connectors.files.tracking.folding import fold
from headrace.connectors.files.tracking.marks import mark_partition
from headrace.connectors.files.tracking.returned import Returned

# A round that is full has not listed everything, and a store may have no order. So many names that rise are a proof,
# and so many entries at most are kept for it.
_PROOF: Final = 1000
# What sorts next to a slash.
_BEHIND_SLASH: Final = "0"
_DONE: Final = "It was read to its end, and with files.lookback=0 changes are not looked for."


class Ordering:
    """How *config* wants it, and what its listings have not shown; one for each start of a connector."""

    def __init__(
        self, config: FilesConfig, *, ticks: Callable[[], float], clock: Callable[[], float]
    ) -> None:
        self.lookback = config.lookback
        self.partition = mark_partition(config.root)
        self.ignores_changes = config.lookback == 0
        self._ticks = ticks
        self._clock = clock
        self.is_local = config.root is None
        self._seconds = config.forget_after_ms / 1000
        self._missing = dict[str, float]()
        self._has_order = True
        # What lies on local disk is sorted here.
        self._unproven = 0 if self.is_local else _PROOF

    @property
    def trusts_order(self) -> bool:
        """Whether names that were not listed surely sort behind those that were."""
        return self._has_order and self._unproven <= 0

    @property
    def now_ms(self) -> float:
        """By this machine's clock, in milliseconds since 1970."""
        return self._clock() * 1000

    def listed(self, count: int, *, rises: bool) -> None:
        """A listing has shown so many names, in order or not."""
        self._unproven -= count
        self._has_order &= rises

    def doubtful(self, missing: Iterable[str]) -> list[str]:
        """Those of *missing*, which the last listing did not show, that have not been missing for long."""
        now = self._ticks()
        self._missing = {path: self._missing.get(path, now) for path in missing}
        return [path for path, at in self._missing.items() if now - at < self._seconds]


class OrderedTracker:
    """A :class:`~headrace.connectors.files.tracking.tracked_listing.ListingTracker` that finds out how far the mark may go.

    It stays before the first file that is not done. One that is done and not listed any more is passed only
    where its folder shows something, or when it has been missing for long: a folder that shows nothing may be a
    place that is away, with files in it that no one has read yet. So it is with the folder that the mark is in,
    on local disk; listings of a store begin behind the mark and do not show it.
    """

    def __init__(self, below: BelowMark, asked: Asked, ordering: Ordering) -> None:
        self._below = below
        self._returned = Returned(asked)
        self._ordering = ordering
        self._closed = {
            path
            for path, each in asked.known.items()
            if path.startswith(below.place) and each.closed
        }
        self._shown = dict[str, int | None]()
        self._folders = set[str]()
        self._mark_folder = _folder(below.mark.key)
        self._busy = set[str]()
        self._stop: str | None = None
        self._last = ""
        self._rises = True
        self._count = 0
        self._is_complete = False
        self.start_after = below.start_after

    def saw(self, path: str) -> None:
        """See :class:`~headrace.connectors.files.selecting.observing.ListingObserver`."""
        self._count += 1
        self._rises &= path > self._last
        self._last = path
        folder = _folder(path)
        if folder == self._mark_folder or not self._below.mark.covers(path):
            self._folders.add(folder)

    def missed(self, path: str) -> bool:
        """See :class:`~headrace.connectors.files.selecting.observing.ListingObserver`."""
        if path in self._closed or self._below.mark.covers(_last_below(path)):
            return False
        self._stop_at(path)
        return True

    def wants_time(self, path: str) -> bool:
        """See :class:`~headrace.connectors.files.selecting.observing.ListingObserver`."""
        return path in self._closed or self._below.wants_time(path)

    def passed(self, path: str, modified_ms: int | None) -> str | None:
        """See :class:`~headrace.connectors.files.selecting.observing.ListingObserver`."""
        if path not in self._closed:
            return self._below.passed(path, modified_ms)
        self._shown[path] = modified_ms
        return _DONE if self._ordering.ignores_changes else None

    def decided(self, path: str, decision: Decision) -> None:
        """See :class:`~headrace.connectors.files.tracking.tracked_listing.ListingTracker`."""
        self._returned.decided(path, decision)
        if path in self._closed and not _is_active(decision):
            return
        if self._below.mark.covers(path):
            self._busy.add(path)
        else:
            self._stop_at(path)

    def left_out(self, path: str) -> None:
        """See :class:`~headrace.connectors.files.tracking.tracked_listing.ListingTracker`."""
        self._returned.left_out(path)

    def ended(self) -> None:
        """See :class:`~headrace.connectors.files.tracking.tracked_listing.ListingTracker`."""
        self._is_complete = True

    @property
    def is_through(self) -> bool:
        """See :class:`~headrace.connectors.files.tracking.tracked_listing.ListingTracker`."""
        beyond = self._ordering.trusts_order and self._last > self._below.mark.key
        return self._is_complete or beyond

    def offsets(self, *, is_idle: bool) -> Offsets:
        """See :class:`~headrace.connectors.files.tracking.tracked_listing.ListingTracker`."""
        self._ordering.listed(self._count, rises=self._rises)
        return {**self._returned.offsets(), **(self._moved() if self._is_sure() else {})}

    def _moved(self) -> Offsets:
        """The mark, where it moves, and tombstones for what it makes needless."""
        mark = self._below.mark
        folded = fold(
            mark,
            self._closed - self._busy,
            stop=self._stop_before_doubtful(),
            lookback=self._ordering.lookback,
            modified_ms={path: at for path, at in self._shown.items() if at is not None},
            now_ms=self._ordering.now_ms,
        )
        moved: dict[SourcePartition, SourceOffset | None] = {}
        if folded.mark != mark:
            # First: where a store is stopped between the two, an entry too many does no harm.
            moved[self._ordering.partition] = folded.mark.as_offset()
        return {**moved, **dict.fromkeys(map(whole, folded.removed))}

    def _is_sure(self) -> bool:
        """Whether all names before the first file that is not done have been listed."""
        if self._is_complete:
            return True
        return self._ordering.trusts_order and self._stop is not None and self._stop <= self._last

    def _stop_at(self, path: str) -> None:
        self._stop = path if self._stop is None else min(path, self._stop)

    def _stop_before_doubtful(self) -> str | None:
        missing = [
            path
            for path in self._closed.difference(self._shown, self._busy)
            if not self._below.mark.covers(path) and _folder(path) not in self._folders
            if self._stop is None or path < self._stop
        ]
        stops = self._ordering.doubtful([*missing, *self._mark_in_doubt()])
        return min([*stops, self._stop] if self._stop is not None else stops, default=None)

    def _mark_in_doubt(self) -> list[str]:
        """The mark, where its folder shows nothing: files that were to come behind it may be away."""
        key = self._below.mark.key
        shown = not key or self._mark_folder in self._folders
        return [key] if self._ordering.is_local and not shown else []


def _is_active(decision: Decision) -> bool:
    """Whether something is left to do with the file."""
    has_work = decision.pieces or decision.offsets
    return bool(has_work) or decision.waits or decision.again_after is not None


def _folder(path: str) -> str:
    return path.rpartition("/")[0]


def _last_below(path: str) -> str:
    """What no name below *path* sorts behind, where that ends with a slash; else *path*."""
    return f"{path[:-1]}{_BEHIND_SLASH}" if path.endswith("/") else path
