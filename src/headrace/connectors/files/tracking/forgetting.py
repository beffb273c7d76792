"""One entry for each file that exists: the entries of those that are gone for good are removed."""

from __future__ import annotations

import os
from array import array
from collections.abc import Callable, Mapping
from typing import Final

from headrace.connect.task import Offsets
from headrace.connectors.files.candidate import Decision
from headrace.connectors.files.config import FilesConfig
from headrace.connectors.files.progress import Progress, whole
from headrace.connectors.files.selecting.selection import Selection
from headrace.connectors.files.tracking.asked import Asked
from headrace.connectors.files.tracking.below_mark import BelowMark
from headrace.connectors.files.tracking.folding import MOST
from headrace.connectors.files.tracking.missing import Missing

# To compare all that is known costs time, and a plan that only forgets is followed by another one at once.
_PAUSE_SECONDS: Final = 60.0


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
        # Of a file that files.path names on local disk only its entry tells that it may be gone.
        self._named = set(map(os.path.abspath, config.path)) if config.root is None else set[str]()
        self._missing = Missing()
        self._again_at = ticks()

    def offsets(self, known: Mapping[str, Progress], seen: array[int]) -> Offsets:
        """Tombstones for what is gone, after a complete listing that has shown *seen*, hashes of paths."""
        now = self._ticks()
        self._missing.shown(seen)
        if now < self._again_at:
            return {}
        self._missing.compare(known, seen, now=now)
        due = self._due(known, now)
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
        self._has_missed = False
        self._is_complete = False
        self.start_after = ""

    def saw(self, path: str) -> None:
        """See :class:`~headrace.connectors.files.tracking.watching.Watcher`."""
        self._seen.append(hash(path))

    def missed(self, path: str) -> None:
        """See :class:`~headrace.connectors.files.tracking.watching.Watcher`."""
        self._has_missed = True

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
        self._is_complete = not self._has_missed

    def offsets(self) -> Offsets:
        """See :class:`~headrace.connectors.files.tracking.following.Follower`."""
        if not self._is_complete:
            return {}
        if self._asked.found_all:
            self._forgetting.nothing_is_missing()
            return {}
        return self._forgetting.offsets(self._asked.known, self._seen)
