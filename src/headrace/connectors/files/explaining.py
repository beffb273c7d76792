"""What a plan would do with each file, and why it leaves others alone. Reads; changes nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from headrace.connect.connector import PlanRequest
from headrace.connect.errors import TaskFailedError
from headrace.connect.explained import Explained
from headrace.connect.partition import SourcePartition
from headrace.connect.task import Split
from headrace.connectors.files.candidate import Decision
from headrace.connectors.files.config import FilesConfig
from headrace.connectors.files.formats import form_shown
from headrace.connectors.files.naming.destinations import Destinations
from headrace.connectors.files.progress import CLEANUP, PENDING, Progress, by_file, number
from headrace.connectors.files.selecting.round import Round
from headrace.connectors.files.tracking.tracked_listing import TrackedListing
from headrace.sources.sharing import Piece

ShareOut = Callable[[Sequence[Piece], int], Sequence[Sequence[Split]]]
"""Makes at most so many shares of pieces, as a plan does."""

_LATER = "It waits for a later round (files.max.objects.per.round, files.max.bytes.per.round)."
_PARTLY = "What is left of it waits for a later round (files.max.bytes.per.round)."
_WHOLE = "It is read whole, although it has more bytes than files.split.bytes."
_YOUNG = "It is too young, or its last record is not complete (files.min.age.ms)."
_NO_MORE = "Nothing is left of it that is complete."
_PENDING = "What files.after.commit says is not done to it yet."
_LOST = "The file vanished before it was read to its end."
_UNSELECTED = "It was begun, and is not selected any more."


class Explaining:
    """Takes a *listing*, as a plan does, and goes on where that would fail or have enough."""

    def __init__(
        self,
        config: FilesConfig,
        listing: TrackedListing,
        destinations: Destinations,
        *,
        share_out: ShareOut,
    ) -> None:
        self._share_out = share_out
        self._config = config
        self._listing = listing
        self._destinations = destinations
        self._left_out = dict[str, str]()
        self._failed = dict[str, str]()
        self._owners = dict[SourcePartition, int]()

    def objects(self, request: PlanRequest, taken: Round) -> Iterator[Explained]:
        """All that is there, in the order of names."""
        known = by_file(request.offsets.known())
        decided = dict[str, tuple[Decision, Sequence[Piece]]]()
        for path, decision in self._listing.decisions(
            known, left_out=self._left_out.__setitem__, failed=self._fails
        ):
            decided[path] = decision, self._taken(path, decision, taken)
        self._look_for_lost(known, decided)
        shares = self._share_out(taken.pieces, request.slots)
        self._owners = {
            split.partition: slot for slot, share in enumerate(shares) for split in share
        }
        for path in sorted({*decided, *self._failed, *self._not_selected(decided)}):
            if path in self._failed:
                yield Explained(name=path, reason=self._failed[path], fails=True)
            elif path in decided:
                yield self._explained(path, *decided[path], known.get(path, Progress()))
            else:
                yield Explained(name=path, reason=self._left_out[path])

    def _fails(self, path: str, error: TaskFailedError) -> None:
        self._failed[path] = str(error).removeprefix(f"{path}: ")

    def _taken(self, path: str, decision: Decision, taken: Round) -> Sequence[Piece]:
        if not decision.pieces:
            return ()
        try:
            self._destinations.of(path)
        except TaskFailedError as error:
            self._fails(path, error)
            return ()
        return taken.take(decision.pieces)

    def _look_for_lost(self, known: Mapping[str, Progress], decided: Mapping[str, object]) -> None:
        for path, progress in known.items():
            if progress.finished or path in decided or path in self._failed:
                continue
            if not self._listing.has_lost(path):
                self._left_out.setdefault(path, _UNSELECTED)
            elif self._config.missing == "fail":
                self._failed[path] = _LOST
            else:
                self._left_out[path] = _LOST

    def _not_selected(self, decided: Mapping[str, object]) -> Iterator[str]:
        """What was left out, but for folders on the way to a file that was not."""
        ways = {path[:end] for path in decided for end in _ends_of_folders(path)}
        return (path for path in self._left_out if path not in ways)

    def _explained(
        self,
        path: str,
        decision: Decision,
        pieces: Sequence[Piece],
        progress: Progress,
    ) -> Explained:
        if not pieces:
            return Explained(
                name=path, reason=_LATER if decision.pieces else _why(decision, progress)
            )
        goes_to = self._destinations.of(path)
        whole = None if decision.unsplit is None else f"{_WHOLE} {decision.unsplit}"
        partly = _PARTLY if len(pieces) < len(decision.pieces) else None
        return Explained(
            name=path,
            slots=sorted({self._owners[each.split.partition] for each in pieces}),
            topic=goes_to.topic,
            partition=goes_to.partition,
            form=form_shown(path, self._config),
            size=sum(each.weight for each in pieces),
            reason=decision.told or whole or partly,
        )


def _why(decision: Decision, progress: Progress) -> str:
    """Why nothing is read."""
    if decision.told:
        return decision.told
    if decision.marker:
        return f"It waits for its marker {decision.marker} (files.complete.marker)."
    if decision.waits:
        return _YOUNG
    if progress.done:
        told = f"It was read to its end: {number(progress.entry, 'recordCount')} records."
        return f"{told} {_PENDING}" if (progress.entry or {}).get(CLEANUP) == PENDING else told
    return _NO_MORE


def _ends_of_folders(path: str) -> Iterator[int]:
    return (end for end, character in enumerate(path) if character == "/")
