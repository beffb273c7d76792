"""The seam between plans and the places where files lie."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Protocol

from headrace.connectors.files.candidate import Decision, Rules
from headrace.connectors.files.config import FilesConfig
from headrace.connectors.files.measured import Measured
from headrace.connectors.files.progress import Progress
from headrace.connectors.files.selecting.observing import UNOBSERVED, ListingObserver
from headrace.connectors.files.selecting.scope import Failed, LeftOut, fail, unheard

EventListener = Callable[[str, str], None]
"""Takes a path and a sentence about it, for the log; says the same only once."""


class Selection(Protocol):
    """The files or objects that a configuration selects, at all times. Used on one thread, by the driver."""

    def decisions(
        self,
        known: Mapping[str, Progress],
        *,
        left_out: LeftOut = unheard,
        failed: Failed = fail,
        observer: ListingObserver = UNOBSERVED,
    ) -> Iterator[tuple[str, Decision]]:
        """List once, and decide about each path, of which *known* holds what was read of it so far.

        Each path comes once, in the order of names where the place has one; whoever has enough may stop
        listening. *left_out* is told of what is there and is not selected. *observer* is shown the listing, and
        what it passes over is left out as well. *failed* is told of a path that a person has to mend; as long as
        it does not raise, the next path follows. Raises
        :class:`~headrace.connect.errors.TaskFailedError` for what concerns all of them, and
        :class:`~headrace.connect.errors.RetriableError` while the place is away.
        """
        ...

    def has_lost(self, path: str) -> bool:
        """Whether there is nothing at *path* any more. Asked about paths that were not selected.

        Raises as :meth:`decisions`. A path of another place was not lost here.
        """
        ...

    def forget_markers(self) -> None:
        """A listing goes on after a while: what it has seen of markers need not hold any more."""
        ...

    def selects(self, path: str) -> bool:
        """Whether a file at *path* would be selected, by its name alone. Pure; where it is hard to say, ``False``."""
        ...

    def measured(self, path: str) -> Measured | None:
        """What is at *path* now, listed or not; ``None`` when there is nothing, or it is of another place.

        Costs one or two requests to a store. Raises as :meth:`decisions`.
        """
        ...

    def gone(self, paths: Sequence[str]) -> Sequence[str]:
        """Those of *paths*, which a complete listing has just not shown, that are surely not there.

        Raises as :meth:`decisions`.
        """
        ...


def rules_of(config: FilesConfig) -> Rules:
    """What *config* says about files that change, and about their pieces."""
    return Rules(
        follow=config.follow,
        changed=config.changed,
        split_bytes=config.split_bytes,
        grow=config.root is None,
        cleanup=config.after_commit != "keep",
        removes=config.takes_away,
    )
