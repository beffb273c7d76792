"""One listing, followed: what is decided about each file, and what is to be remembered then."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Protocol

from headrace.connect.task import Offsets
from headrace.connectors.files.candidate import Decision
from headrace.connectors.files.progress import Progress
from headrace.connectors.files.selecting.scope import Failed, LeftOut, fail, unheard
from headrace.connectors.files.selecting.selection import Selection
from headrace.connectors.files.tracking.watching import Watcher


class Follower(Watcher, Protocol):
    """Follows what one plan lists and decides."""

    def decided(self, path: str, decision: Decision) -> None:
        """The file at *path* is there, and *decision* says what is done with it."""
        ...

    def ended(self) -> None:
        """The listing has come to its end; not called where the plan has had enough before."""
        ...

    @property
    def is_through(self) -> bool:
        """Behind the listing: whether all names up to the mark have been listed, so far as they can be."""
        ...

    def offsets(self) -> Offsets:
        """Behind the listing: entries that are of no use any more, and the mark where it moves."""
        ...


class Following:
    """A :class:`~headrace.connectors.files.selecting.selection.Decides` for one plan, which *follower* follows."""

    def __init__(self, selection: Selection, follower: Follower) -> None:
        self._selection = selection
        self._follower = follower

    def decisions(
        self,
        known: Mapping[str, Progress],
        *,
        left_out: LeftOut = unheard,
        failed: Failed = fail,
    ) -> Iterator[tuple[str, Decision]]:
        """See :class:`~headrace.connectors.files.selecting.selection.Decides`."""
        listed = self._selection.decisions(
            known, left_out=left_out, failed=failed, watcher=self._follower
        )
        for path, decision in listed:
            self._follower.decided(path, decision)
            yield path, decision
        self._follower.ended()

    def has_lost(self, path: str) -> bool:
        """See :class:`~headrace.connectors.files.selecting.selection.Decides`."""
        return self._selection.has_lost(path)
