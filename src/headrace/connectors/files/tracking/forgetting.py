"""One entry for each file that exists: the entries of those that are gone for good are removed."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Mapping
from collections.abc import Set as AbstractSet
from typing import Final

from headrace.connect.task import Offsets
from headrace.connectors.files.candidate import Decision
from headrace.connectors.files.config import FilesConfig
from headrace.connectors.files.progress import Progress, whole
from headrace.connectors.files.selecting.named import named_on_disk
from headrace.connectors.files.selecting.selection import Selection
from headrace.connectors.files.tracking.asked import Asked
from headrace.connectors.files.tracking.below_mark import BelowMark
from headrace.connectors.files.tracking.folding import MOST
from headrace.connectors.files.tracking.missing import Missing

# To compare all that is known costs time, and a plan that only forgets is followed by another one at once.
_PAUSE_SECONDS: Final = 60.0
_EMPTY_SECONDS: Final = 24 * 3600.0
"""For so long at least nothing is forgotten of a folder that shows nothing: it may be a place that is away."""


class Forgetting:
    """One for each start of a connector, because only its own listings count. Used by its thread.

    A file must have been missing for so long because a place may only be away: a disk that is not mounted shows
    an empty folder, and whatever was forgotten then would be read again.
    """

    def __init__(
        self, config: FilesConfig, selection: Selection, *, ticks: Callable[[], float]
    ) -> None:
        self._selection = selection
        self._ticks = ticks
        self._seconds = config.forget_after_ms / 1000
        self._named = named_on_disk(config)
        # An emptied folder is no wonder where files are taken away when they are read.
        self._is_emptied = config.after_commit in ("delete", "move")
        self._missing = Missing()
        self._again_at = ticks()

    def offsets(
        self, known: Mapping[str, Progress], seen: array[int], folders: AbstractSet[int]
    ) -> Offsets:
        """Tombstones for what is gone, after a complete listing that has shown *seen*, hashes of paths.

        *folders* has the hashes of those that have shown something.
        """
        now = self._ticks()
        self._missing.shown(seen)
        if now < self._again_at:
            return {}
        self._missing.compare(known, seen, now=now)
        due = self._sure(self._due(known, now), folders, now)
        self._again_at = now if len(due) > MOST else now + min(_PAUSE_SECONDS, self._seconds)
        gone = self._selection.gone(due[:MOST])
        self._missing.let_be(set(due[:MOST]).difference(gone))
        return dict.fromkeys(map(whole, gone))

    def nothing_is_missing(self) -> None:
        """A listing has shown all that is known."""
        self._missing = Missing()

    def _due(self, known: Mapping[str, Progress], now: float) -> list[str]:
        found = self._missing.missed(known, seconds=self._seconds, now=now)
        others = [path for path in found if not self._is_concerned(path)]
        self._missing.let_be(others)
        left = set(others)
        return [path for path in found if path not in left and known[path].closed]

    def _sure(self, due: list[str], folders: AbstractSet[int], now: float) -> list[str]:
        """What of *due* is not only away with all of its folder."""
        if self._is_emptied:
            return due
        doubtful = [path for path in due if hash(_folder(path)) not in folders]
        seconds = max(self._seconds, _EMPTY_SECONDS)
        left = set(doubtful).difference(self._missing.missed(doubtful, seconds=seconds, now=now))
        return [path for path in due if path not in left]

    def _is_concerned(self, path: str) -> bool:
        return path not in self._named and self._selection.selects(path)


class ObjectFollower:
    """A :class:`~headrace.connectors.files.tracking.following.Follower` that looks for what is gone."""

    def __init__(self, below: BelowMark, asked: Asked, forgetting: Forgetting) -> None:
        self._below = below
        self._asked = asked
        self._forgetting = forgetting
        # Not the names: there may be millions.
        self._seen = array("q")
        self._folders = set[int]()
        self._folder = ""
        self._has_missed = False
        self._has_ended = False
        self.start_after = ""

    def saw(self, path: str) -> None:
        """See :class:`~headrace.connectors.files.tracking.watching.Watcher`."""
        self._seen.append(hash(path))
        folder = _folder(path)
        if folder != self._folder or not self._folders:
            self._folder = folder
            self._folders.add(hash(folder))

    def missed(self, path: str) -> bool:
        """See :class:`~headrace.connectors.files.tracking.watching.Watcher`."""
        if path.endswith("/"):
            self._has_missed = True
            return True
        # Its name is there: it is not gone.
        self.saw(path)
        return path not in self._asked and not self._below.mark.covers(path)

    def wants_time(self, path: str) -> bool:
        """See :class:`~headrace.connectors.files.tracking.watching.Watcher`."""
        return self._below.wants_time(path)

    def passed(self, path: str, modified_ms: int | None) -> str | None:
        """See :class:`~headrace.connectors.files.tracking.watching.Watcher`."""
        return self._below.passed(path, modified_ms) if self._below.mark.key else None

    def decided(self, path: str, decision: Decision) -> None:
        """See :class:`~headrace.connectors.files.tracking.following.Follower`."""

    def ended(self) -> None:
        """See :class:`~headrace.connectors.files.tracking.following.Follower`."""
        self._has_ended = True

    @property
    def is_through(self) -> bool:
        """See :class:`~headrace.connectors.files.tracking.following.Follower`."""
        return self._has_ended

    def offsets(self) -> Offsets:
        """See :class:`~headrace.connectors.files.tracking.following.Follower`."""
        if self._has_missed or not self._has_ended:
            return {}
        if self._asked.found_all:
            self._forgetting.nothing_is_missing()
            return {}
        return self._forgetting.offsets(self._asked.known, self._seen, self._folders)


def _folder(path: str) -> str:
    return path.rpartition("/")[0]
