"""One mark for all that is read: it follows the files that are done, in the order of names."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Final

from headrace.connect.partition import SourceOffset, SourcePartition
from headrace.connect.task import Offsets
from headrace.connectors.files.candidate import Decision
from headrace.connectors.files.config import FilesConfig
from headrace.connectors.files.progress import Progress, whole
from headrace.connectors.files.tracking.below_mark import BelowMark
from headrace.connectors.files.tracking.folding import fold
from headrace.connectors.files.tracking.marks import mark_partition

# A round that is full has not listed everything, and a store may have no order. So many names that rise are a proof,
# and so many entries at most are kept for it.
_PROOF: Final = 1000
_DONE: Final = "It was read to its end, and with files.lookback=0 changes are not looked for."


class Ordering:
    """How *config* wants it, and what its listings have not shown; one for each start of a connector."""

    def __init__(self, config: FilesConfig, *, ticks: Callable[[], float]) -> None:
        self.lookback = config.lookback
        self.partition = mark_partition(config.root)
        self.ignores_changes = config.lookback == 0
        self._ticks = ticks
        self._seconds = config.forget_after_ms / 1000
        self._missing = dict[str, float]()
        self._has_order = True
        # What lies on local disk is sorted here.
        self._unproven = 0 if config.root is None else _PROOF

    @property
    def trusts_order(self) -> bool:
        """Whether names that were not listed surely sort behind those that were."""
        return self._has_order and self._unproven <= 0

    def listed(self, count: int, *, rises: bool) -> None:
        """A listing has shown so many names, in order or not."""
        self._unproven -= count
        self._has_order &= rises

    def doubtful(self, missing: Iterable[str]) -> list[str]:
        """Those of *missing*, which the last listing did not show, that have not been missing for long."""
        now = self._ticks()
        self._missing = {path: self._missing.get(path, now) for path in missing}
        return [path for path, at in self._missing.items() if now - at < self._seconds]


class OrderedFollower:
    """A :class:`~headrace.connectors.files.tracking.following.Follower` that finds out how far the mark may go.

    It stays before the first file that is not done. One that is done and not listed any more is passed only
    where its folder shows something, or when it has been missing for long: a folder that shows nothing may be a
    place that is away, with files in it that nobody has read yet.
    """

    def __init__(self, below: BelowMark, known: Mapping[str, Progress], ordering: Ordering) -> None:
        self._below = below
        self._ordering = ordering
        self._closed = {
            path for path, each in known.items() if path.startswith(below.place) and each.closed
        }
        self._shown = dict[str, int | None]()
        self._folders = set[str]()
        self._busy = set[str]()
        self._stop: str | None = None
        self._last = ""
        self._rises = True
        self._count = 0
        self._has_missed = False
        self._is_complete = False
        self.start_after = below.start_after

    def saw(self, path: str) -> None:
        """See :class:`~headrace.connectors.files.tracking.watching.Watcher`."""
        self._count += 1
        self._rises &= path > self._last
        self._last = path

    def missed(self, path: str) -> None:
        """See :class:`~headrace.connectors.files.tracking.watching.Watcher`."""
        self._has_missed = True

    def wants_time(self, path: str) -> bool:
        """See :class:`~headrace.connectors.files.tracking.watching.Watcher`."""
        return path in self._closed or self._below.wants_time(path)

    def passed(self, path: str, modified_ms: int | None) -> str | None:
        """See :class:`~headrace.connectors.files.tracking.watching.Watcher`."""
        if not self._below.mark.covers(path):
            self._folders.add(_folder(path))
        if path not in self._closed:
            return self._below.passed(path, modified_ms)
        self._shown[path] = modified_ms
        return _DONE if self._ordering.ignores_changes else None

    def decided(self, path: str, decision: Decision) -> None:
        """See :class:`~headrace.connectors.files.tracking.following.Follower`."""
        if path in self._closed and not _is_active(decision):
            return
        if self._below.mark.covers(path):
            self._busy.add(path)
        elif self._stop is None or path < self._stop:
            self._stop = path

    def ended(self) -> None:
        """See :class:`~headrace.connectors.files.tracking.following.Follower`."""
        self._is_complete = True

    def offsets(self) -> Offsets:
        """See :class:`~headrace.connectors.files.tracking.following.Follower`."""
        self._ordering.listed(self._count, rises=self._rises)
        if not self._is_sure():
            return {}
        mark = self._below.mark
        folded = fold(
            mark,
            self._closed - self._busy,
            stop=self._stop_before_doubtful(),
            lookback=self._ordering.lookback,
            modified_ms={path: at for path, at in self._shown.items() if at is not None},
        )
        moved: dict[SourcePartition, SourceOffset | None] = {}
        if folded.mark != mark:
            # First: where a store is stopped between the two, an entry too many does no harm.
            moved[self._ordering.partition] = folded.mark.as_offset()
        return {**moved, **dict.fromkeys(map(whole, folded.removed))}

    def _is_sure(self) -> bool:
        """Whether all names before the first file that is not done have been listed."""
        if self._has_missed:
            return False
        return self._is_complete or (self._ordering.trusts_order and self._stop is not None)

    def _stop_before_doubtful(self) -> str | None:
        missing = (
            path
            for path in self._closed.difference(self._shown, self._busy)
            if not self._below.mark.covers(path) and _folder(path) not in self._folders
            if self._stop is None or path < self._stop
        )
        stops = self._ordering.doubtful(missing)
        return min([*stops, self._stop] if self._stop is not None else stops, default=None)


def _is_active(decision: Decision) -> bool:
    """Whether something is left to do with the file."""
    has_work = decision.pieces or decision.offsets
    return bool(has_work) or decision.waits or decision.again_after is not None


def _folder(path: str) -> str:
    return path.rpartition("/")[0]
