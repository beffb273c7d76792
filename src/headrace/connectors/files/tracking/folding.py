"""Which files a mark passes next. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import takewhile
from typing import Final

from headrace.connectors.files.tracking.marks import Mark, is_credible

MOST: Final = 10_000
"""How many entries one plan removes: all of them go into one transaction."""
_SHARE: Final = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Fold:
    """*mark* is where the mark is now, and *removed* are the paths whose entries are of no use then."""

    mark: Mark
    removed: tuple[str, ...] = ()


def fold(
    mark: Mark,
    closed: Iterable[str],
    *,
    stop: str | None,
    lookback: int,
    modified_ms: Mapping[str, int],
    now_ms: float,
    most: int = MOST,
) -> Fold:
    """What *mark* passes of the *closed* files, which are read to their end and of which nothing is left to do.

    *stop* is the first name behind the mark of which that cannot be said, ``None`` where there is none: the
    mark stays below it, and below the *lookback* greatest ones that it could pass. *modified_ms* says when
    files were changed, where that is known; a time in the future of *now_ms* counts as now. So few that they would not pay for a transaction are left for later,
    unless the look-back is small itself. At most *most* entries are removed.
    """
    paths = sorted(closed)
    below = list(takewhile(mark.covers, paths))
    run = [each for each in paths[len(below) :] if stop is None or each < stop]
    run = run[: max(0, len(run) - lookback)]
    if len(below) + len(run) <= lookback // _SHARE:
        return Fold(mark=mark)
    removed = (*below, *run)[:most]
    times = [modified_ms[each] for each in removed if each in modified_ms and not mark.covers(each)]
    return Fold(mark=_moved(mark, removed[-1], times, now_ms), removed=removed)


def _moved(mark: Mark, greatest: str, times: Iterable[int], now_ms: float) -> Mark:
    if mark.covers(greatest):
        return mark
    known = [mark.modified_ms] if mark.modified_ms is not None else []
    # One file of the future would be newer than all that ever comes too late.
    past = (at if is_credible(at, now_ms=now_ms) else int(now_ms) for at in (*times, *known))
    return Mark(key=greatest, modified_ms=max(past, default=None))
