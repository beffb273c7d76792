"""How many bytes there are behind the offsets of files and objects, for people who ask."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping
from typing import Final

from headrace.connect.partition import SourceOffset, SourcePartition
from headrace.connectors.files.config import FilesConfig
from headrace.connectors.files.formats import known_by_extension
from headrace.connectors.files.measured import Measured
from headrace.connectors.files.progress import KnownFiles, Progress, number, part, whole
from headrace.connectors.files.tail import TAIL
from headrace.sources.offset_entry import DONE, QUARANTINED

Measure = Callable[[str], Measured | None]
"""Looks at a path or an address; ``None`` when nothing is there, or it is of another place."""

MOST_REQUESTED: Final = 100
"""How many objects of a store are looked at for one answer. Each is a request or two, so that this takes seconds."""

_LOG = logging.getLogger(__name__)
_NOT_ASKED: Final = (
    "The lag of %d objects that are not read to their end is not told: the store is asked about %d at a time. "
    "The first one is %s."
)


def lags_of(
    known: KnownFiles, config: FilesConfig, measure: Measure
) -> Iterator[tuple[SourcePartition, int]]:
    """Each source partition of which it can be told with its bytes to read.

    Nothing is looked at for what was read to its end and does not grow.
    """
    may_grow = config.follow or config.changed == TAIL
    unsure = dict[str, Progress]()
    for path, progress in known.pairs():
        if progress.done and not progress.quarantined and not may_grow:
            yield whole(path), 0
        elif config.format != "auto" or known_by_extension(path):
            unsure[path] = progress
    for path in _asked(sorted(unsure), is_local=config.root is None):
        found = measure(path)
        if found is not None:
            yield from bytes_left(
                path, unsure[path], found, replaces=config.changed == TAIL
            ).items()


def bytes_left(
    path: str, progress: Progress, found: Measured, *, replaces: bool
) -> Mapping[SourcePartition, int]:
    """The bytes of *found*, which is what lies at *path*, behind each offset of *progress*. Pure.

    Nothing of another file than the one that was read, unless one *replaces* the other and is read on. Neither of
    a partition in quarantine, of which nothing more is read, nor of one that a person has set by its records.
    """
    file = found.file
    is_same = replaces or all(file.is_still(version) for version in progress.versions)
    if not is_same:
        return {}
    if not found.by_bytes:
        return {whole(path): 0} if progress.done and file.size == progress.size else {}
    if file.size < progress.furthest or progress.restarted:
        return {}
    left = {
        part(path, (start, stop)): _behind(offset, start, min(stop, file.size))
        for (start, stop), offset in progress.ranges.items()
        if _tells(offset)
    }
    if progress.entry is not None and _tells(progress.entry):
        left[whole(path)] = _uncovered(progress, file.size)
    return left


def _asked(paths: list[str], *, is_local: bool) -> list[str]:
    if is_local or len(paths) <= MOST_REQUESTED:
        return paths
    _LOG.info(_NOT_ASKED, len(paths) - MOST_REQUESTED, MOST_REQUESTED, paths[MOST_REQUESTED])
    return paths[:MOST_REQUESTED]


def _tells(offset: SourceOffset) -> bool:
    """Whether *offset* says at which byte reading goes on."""
    return not offset.get(QUARANTINED) and ("anchor" in offset or not number(offset, "recordCount"))


def _behind(offset: SourceOffset, start: int, stop: int) -> int:
    return 0 if offset.get(DONE) else max(0, stop - max(start, number(offset, "anchor")))


def _uncovered(progress: Progress, size: int) -> int:
    """The bytes behind the entry that no range has."""
    left, at = 0, progress.anchor
    for start, stop in sorted(progress.ranges):
        left += max(0, start - at)
        at = max(at, stop)
    return left + max(0, size - at)
