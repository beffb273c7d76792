"""One entry for each file that exists: the entries of those that are gone for good are removed."""

from __future__ import annotations

import itertools
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
from headrace.connectors.files.tracking.absence_records import AbsenceRecords
from headrace.connectors.files.tracking.asked import Asked
from headrace.connectors.files.tracking.below_mark import BelowMark
from headrace.connectors.files.tracking.folding import MOST
from headrace.connectors.files.tracking.missing import Missing
from headrace.connectors.files.tracking.returned import Returned

# To compare all that is known costs time, and a plan that only forgets is followed by another one at once.
_PAUSE_SECONDS: Final = 60.0
_GOING: Final = "What files.after.commit says is being done to it, or was after it had been listed."
_EMPTY_SECONDS: Final = 24 * 3600.0
"""For so long at least nothing is forgotten of a folder that shows nothing: it may be a place that is away."""
# What is away for a moment costs no transactions.
_NOTE_SECONDS: Final = 300.0


class OffsetRetention:
    """One for each start of a connector. Used by its thread; *ticks* tells seconds that only rise, *clock* those since 1970.

    A file must have been missing for so long because a place may only be away: a disk that is not mounted shows
    an empty folder, and whatever was forgotten then would be read again. For how long it is missing its entry
    says, so that short runs count together: noted when the first plan of a run has nothing else to do, and later for
    what has been missing for minutes.
    """

    def __init__(
        self,
        config: FilesConfig,
        selection: Selection,
        *,
        ticks: Callable[[], float],
        clock: Callable[[], float],
    ) -> None:
        self._selection = selection
        self._ticks = ticks
        self._seconds = config.forget_after_ms / 1000
        self._empty_seconds = max(self._seconds, _EMPTY_SECONDS)
        self._notes = AbsenceRecords(clock, most_seconds=self._empty_seconds / 2)
        self._named = named_on_disk(config)
        # An emptied folder is no wonder where files are taken away when they are read.
        self._is_emptied = config.takes_away
        self._missing = Missing()
        self._has_recalled = False
        self._has_rested = False
        self._has_unnoted = False
        self._again_at = ticks()

    def offsets(
        self,
        known: Mapping[str, Progress],
        seen: array[int],
        folders: AbstractSet[int],
        *,
        is_idle: bool,
    ) -> Offsets:
        """Tombstones for what is gone, and notes for what is missing, after a complete listing that has shown *seen*.

        These are hashes of paths; *folders* has those of folders that have shown something. *is_idle* says that
        the plan has nothing else to do.
        """
        now = self._ticks()
        self._missing.shown(seen)
        rests_first = is_idle and not self._has_rested
        if now < self._again_at and not rests_first:
            return {}
        self._missing.compare(known, seen, now=now)
        self._recall(known, folders, now)
        due = self._sure(self._due(known, now), folders, now)
        gone = self._selection.gone(due[:MOST])
        self._missing.let_be(set(due[:MOST]).difference(gone))
        seconds = 0 if rests_first else _NOTE_SECONDS
        unnoted = self._missing.unnoted(known, seconds=seconds, now=now)
        noted = self._noted(unnoted, known, but=set(due), most=MOST - len(gone))
        has_more = len(due) > MOST or self._has_unnoted
        self._has_rested |= is_idle and not has_more
        self._again_at = now if has_more else now + min(_PAUSE_SECONDS, self._seconds)
        return {**dict.fromkeys(map(whole, gone)), **noted}

    def nothing_is_missing(self, *, is_idle: bool) -> None:
        """A listing has shown all that is known."""
        self._missing = Missing()
        self._has_recalled = True
        self._has_rested |= is_idle

    def _recall(self, known: Mapping[str, Progress], folders: AbstractSet[int], now: float) -> None:
        """Count what earlier runs have seen of what the first listing misses: what was shown since has no past."""
        if self._has_recalled:
            return
        self._has_recalled = True
        missing = self._concerned(self._missing.missed(known, seconds=0, now=now))
        recalled = list(self._notes.recalled(missing, known))
        self._missing.recall(recalled)
        # Only half of what is needed counts between two notes.
        self._missing.noted(
            each.path for each in recalled if each.between < self._needed(each.path, folders) / 2
        )

    def _noted(
        self,
        paths: list[str],
        known: Mapping[str, Progress],
        *,
        but: AbstractSet[str],
        most: int,
    ) -> Offsets:
        """Notes for *paths*, *but* some, *most* of them at a time."""
        left = [path for path in paths if path not in but]
        concerned = filter(self._is_concerned, left)
        chosen = list(itertools.islice(concerned, most))
        self._has_unnoted = next(concerned, None) is not None
        self._missing.noted(chosen if self._has_unnoted else left)
        return self._notes.offsets(self._missing.observed(chosen, now=self._ticks()), known)

    def _needed(self, path: str, folders: AbstractSet[int]) -> float:
        """For how many seconds the file at *path* must be missing."""
        is_doubtful = not self._is_emptied and hash(_folder(path)) not in folders
        return self._empty_seconds if is_doubtful else self._seconds

    def _due(self, known: Mapping[str, Progress], now: float) -> list[str]:
        found = self._concerned(self._missing.missed(known, seconds=self._seconds, now=now))
        return [path for path in found if known[path].closed]

    def _concerned(self, missing: list[str]) -> list[str]:
        others = [path for path in missing if not self._is_concerned(path)]
        self._missing.let_be(others)
        left = set(others)
        return [path for path in missing if path not in left]

    def _sure(self, due: list[str], folders: AbstractSet[int], now: float) -> list[str]:
        """What of *due* is not only away with all of its folder."""
        doubtful = [path for path in due if self._needed(path, folders) > self._seconds]
        seconds = self._empty_seconds
        left = set(doubtful).difference(self._missing.missed(doubtful, seconds=seconds, now=now))
        return [path for path in due if path not in left]

    def _is_concerned(self, path: str) -> bool:
        # Of a file that the settings name only its entry tells that it was there, unless it was to be taken away.
        if path in self._named:
            return self._is_emptied
        return self._selection.selects(path)


class ObjectTracker:
    """A :class:`~headrace.connectors.files.tracking.tracked_listing.ListingTracker` that looks for what is gone."""

    def __init__(self, below: BelowMark, asked: Asked, retention: OffsetRetention) -> None:
        self._below = below
        self._asked = asked
        self._retention = retention
        # Not the names: there may be millions.
        self._seen = array("q")
        self._folders = set[int]()
        self._folder = ""
        self._returned = Returned(asked)
        self._has_missed = False
        self._has_ended = False
        self.start_after = ""

    def saw(self, path: str) -> None:
        """See :class:`~headrace.connectors.files.selecting.observing.ListingObserver`."""
        self._seen.append(hash(path))
        folder = _folder(path)
        if folder != self._folder or not self._folders:
            self._folder = folder
            self._folders.add(hash(folder))

    def missed(self, path: str) -> bool:
        """See :class:`~headrace.connectors.files.selecting.observing.ListingObserver`."""
        if path.endswith("/"):
            self._has_missed = True
            return True
        # Its name is there: it is not gone.
        self.saw(path)
        return path not in self._asked and not self._below.mark.covers(path)

    def wants_time(self, path: str) -> bool:
        """See :class:`~headrace.connectors.files.selecting.observing.ListingObserver`."""
        return self._below.wants_time(path)

    def passed(self, path: str, modified_ms: int | None) -> str | None:
        """See :class:`~headrace.connectors.files.selecting.observing.ListingObserver`."""
        if self._asked.leaves_out(path):
            return _GOING
        return self._below.passed(path, modified_ms) if self._below.mark.key else None

    def decided(self, path: str, decision: Decision) -> None:
        """See :class:`~headrace.connectors.files.tracking.tracked_listing.ListingTracker`."""
        self._returned.decided(path, decision)

    def left_out(self, path: str) -> None:
        """See :class:`~headrace.connectors.files.tracking.tracked_listing.ListingTracker`."""
        self._returned.left_out(path)
        if path in self._asked.known:
            self.saw(path)

    def ended(self) -> None:
        """See :class:`~headrace.connectors.files.tracking.tracked_listing.ListingTracker`."""
        self._has_ended = True

    @property
    def is_through(self) -> bool:
        """See :class:`~headrace.connectors.files.tracking.tracked_listing.ListingTracker`."""
        return self._has_ended

    def offsets(self, *, is_idle: bool) -> Offsets:
        """See :class:`~headrace.connectors.files.tracking.tracked_listing.ListingTracker`."""
        shown = self._returned.offsets()
        if self._has_missed or not self._has_ended:
            return shown
        if self._asked.found_all:
            self._retention.nothing_is_missing(is_idle=is_idle)
            return shown
        known, idle = self._asked.known, is_idle and not shown
        return {
            **shown,
            **self._retention.offsets(known, self._seen, self._folders, is_idle=idle),
        }


def _folder(path: str) -> str:
    return path.rpartition("/")[0]
