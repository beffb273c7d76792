"""What a plan would do with each file, and why it leaves others alone. Reads; changes nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, MutableMapping, Sequence

from headrace.connect.connector import Explained, PlanRequest
from headrace.connect.errors import TaskFailedError
from headrace.connect.partition import SourceOffset, SourcePartition
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
_YOUNG = "It is too young: it is read when it has been untouched for files.min.age.ms."
_UNENDED = "Its last record is not complete: it is read when its line end is there"
_EMPTY = "It is empty: it is done without a record."
_EMPTY_PACKED = "It is empty, and opened all the same: that may be an error."
_NO_MORE = "Nothing is left of it that is complete."
_QUARANTINED = "It would be put in quarantine:"
_PENDING = "What files.after.commit says is not done to it yet."
_LOST = "The file vanished before it was read to its end."
_UNSELECTED = "It was begun, and is not selected any more."


class Explaining:
    """Takes a *listing*, as a plan does, and goes on where that would fail or have enough.

    *heard* holds what would be logged of it, by names; what is told with an object is taken out.
    """

    def __init__(
        self,
        config: FilesConfig,
        listing: TrackedListing,
        destinations: Destinations,
        *,
        share_out: ShareOut,
        heard: MutableMapping[str, str] | None = None,
    ) -> None:
        self._heard = {} if heard is None else heard
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
                yield Explained(name=path, reason=self._heard.pop(path, self._left_out[path]))

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
        if decision.unopenable is not None and not self._config.tolerates_errors:
            self._failed[path] = decision.unopenable
            return ()
        return taken.take(path, decision.pieces)

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
            reason = _LATER if decision.pieces else _why(decision, progress)
            if decision.marker:
                # A marker of a folder is told of that, for all that waits in it.
                self._heard.pop(path[: path.rfind("/") + 1], None)
            return Explained(name=path, reason=self._heard.pop(path, reason))
        if decision.unopenable is not None:
            return Explained(name=path, reason=f"{_QUARANTINED} {decision.unopenable}")
        goes_to = self._destinations.of(path)
        whole = None if decision.unsplit is None else f"{_WHOLE} {decision.unsplit}"
        partly = _PARTLY if len(pieces) < len(decision.pieces) else None
        form, size = form_shown(path, self._config), sum(each.weight for each in pieces)
        empty = None if size else _EMPTY if form == "bytes" else _EMPTY_PACKED
        return Explained(
            name=path,
            slots=sorted({self._owners[each.split.partition] for each in pieces}),
            topic=goes_to.topic,
            partition=goes_to.partition,
            form=form,
            size=size,
            reason=decision.told or decision.note or whole or partly or empty,
        )


def _why(decision: Decision, progress: Progress) -> str:
    """Why nothing is read."""
    if decision.told:
        return decision.told
    if decision.waits or decision.unended:
        return _awaited(decision)
    if progress.done:
        told = _read(progress.entry)
        return f"{told} {_PENDING}" if (progress.entry or {}).get(CLEANUP) == PENDING else told
    end = next((each for each in decision.offsets.values() if each and each.get("done")), None)
    if end is None:
        return _NO_MORE
    return _read(end) if end.get("size") else _EMPTY


def _awaited(decision: Decision) -> str:
    """What has to come before it is read."""
    if decision.marker:
        name = decision.marker.rpartition("/")[2]
        return f"It waits for its marker {name} (files.complete.marker)."
    if not decision.unended:
        return decision.note or _YOUNG
    old = ", or when it has been untouched for files.min.age.ms" if decision.waits else ""
    return f"{_UNENDED}{old}."


def _read(entry: SourceOffset | None) -> str:
    return f"It was read to its end: {number(entry, 'recordCount')} records."


def _ends_of_folders(path: str) -> Iterator[int]:
    return (end for end, character in enumerate(path) if character == "/")
