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
from headrace.connectors.files.tracking.missing_notes import MissingNotes, without_notes

# To compare all that is known costs time, and a plan that only forgets is followed by another one at once.
_PAUSE_SECONDS: Final = 60.0
_EMPTY_SECONDS: Final = 24 * 3600.0
"""For so long at least nothing is forgotten of a folder that shows nothing: it may be a place that is away."""


class Forgetting:
    """One for each start of a connector. Used by its thread; *ticks* tells seconds that only rise, *clock* those since 1970.

    A file must have been missing for so long because a place may only be away: a disk that is not mounted shows
    an empty folder, and whatever was forgotten then would be read again. Since when it is missing its entry says,
    so that short runs count together.
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
        self._notes = MissingNotes(clock)
        self._seconds = config.forget_after_ms / 1000
        self._named = named_on_disk(config)
        # An emptied folder is no wonder where files are taken away when they are read.
        self._is_emptied = config.takes_away
        self._missing = Missing()
        self._again_at = ticks()

    def offsets(
        self, known: Mapping[str, Progress], seen: array[int], folders: AbstractSet[int]
    ) -> Offsets:
        """Tombstones for what is gone, and notes for what is missing, after a complete listing that has shown *seen*.

        These are hashes of paths.

        *folders* has the hashes of those that have shown something.
        """
        now = self._ticks()
        self._missing.shown(seen)
        if now < self._again_at:
            return {}
        self._missing.compare(known, seen, now=now)
        unnoted = self._unnoted(known, now)
        self._missing.recall(self._notes.recalled(unnoted, known, now=now))
        due = self._sure(self._due(known, now), folders, now)
        gone = self._selection.gone(due[:MOST])
        self._missing.let_be(set(due[:MOST]).difference(gone))
        noted = self._notes.offsets(unnoted, known, but=set(due), most=MOST - len(gone))
        has_more = len(due) > MOST or self._notes.has_more
        self._again_at = now if has_more else now + min(_PAUSE_SECONDS, self._seconds)
        return {**dict.fromkeys(map(whole, gone)), **noted}

    def nothing_is_missing(self) -> None:
        """A listing has shown all that is known."""
        self._missing = Missing()

    def _unnoted(self, known: Mapping[str, Progress], now: float) -> list[str]:
        """What is missing, as long as not all of it is known to have its note."""
        if not self._missing.has_more and not self._notes.has_more:
            return []
        return self._concerned(self._missing.missed(known, seconds=0, now=now))

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
        if self._is_emptied:
            return due
        doubtful = [path for path in due if hash(_folder(path)) not in folders]
        seconds = max(self._seconds, _EMPTY_SECONDS)
        left = set(doubtful).difference(self._missing.missed(doubtful, seconds=seconds, now=now))
        return [path for path in due if path not in left]

    def _is_concerned(self, path: str) -> bool:
        # Of a file that the settings name only its entry tells that it was there, unless it was to be taken away.
        if path in self._named:
            return self._is_emptied
        return self._selection.selects(path)


class ObjectTracker:
    """A :class:`~headrace.connectors.files.tracking.tracked_listing.ListingTracker` that looks for what is gone."""

    def __init__(self, below: BelowMark, asked: Asked, forgetting: Forgetting) -> None:
        self._below = below
        self._asked = asked
        self._forgetting = forgetting
        # Not the names: there may be millions.
        self._seen = array("q")
        self._folders = set[int]()
        self._folder = ""
        self._returned = list[str]()
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
        return self._below.passed(path, modified_ms) if self._below.mark.key else None

    def decided(self, path: str, decision: Decision) -> None:
        """See :class:`~headrace.connectors.files.tracking.tracked_listing.ListingTracker`."""
        # What is read now gets its next entry from the slot.
        if path in self._asked.returned and not (decision.pieces or decision.offsets):
            self._returned.append(path)

    def ended(self) -> None:
        """See :class:`~headrace.connectors.files.tracking.tracked_listing.ListingTracker`."""
        self._has_ended = True

    @property
    def is_through(self) -> bool:
        """See :class:`~headrace.connectors.files.tracking.tracked_listing.ListingTracker`."""
        return self._has_ended

    def offsets(self) -> Offsets:
        """See :class:`~headrace.connectors.files.tracking.tracked_listing.ListingTracker`."""
        known = self._asked.known
        shown = without_notes(self._returned[:MOST], known)
        # Another plan may go on with the listing, and need not say so again.
        self._returned = self._returned[MOST:]
        if self._has_missed or not self._has_ended:
            return shown
        if self._asked.found_all:
            self._forgetting.nothing_is_missing()
            return shown
        return {**shown, **self._forgetting.offsets(known, self._seen, self._folders)}


def _folder(path: str) -> str:
    return path.rpartition("/")[0]
