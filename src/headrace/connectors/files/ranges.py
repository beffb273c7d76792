"""A file in ranges that several slots read. Pure.

Once a range has an offset it stays as it is until all ranges are done; what no range covers is cut anew.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import replace

from headrace.connect.partition import SourceOffset, SourcePartition
from headrace.connect.task import Split
from headrace.connectors.files.candidate import (
    Candidate,
    Decision,
    Rules,
    check_format,
    details_of,
    finished,
)
from headrace.connectors.files.progress import QUARANTINED, Progress, number, part, whole
from headrace.sources.sharing import Piece


def of_ranges(candidate: Candidate, progress: Progress, rules: Rules) -> Decision:
    """The ranges of the file that are still to be read; when all are done, the entry for the whole."""
    check_format(candidate, progress)
    folded, base = _folded(candidate, progress)
    ranges = {} if folded else progress.ranges
    pieces = [
        _range_piece(candidate, piece, offset=offset, seek=False)
        for piece, offset in sorted(ranges.items())
        if not offset.get("done") and not offset.get(QUARANTINED)
    ]
    pieces += [
        _range_piece(candidate, piece, offset=None, seek=seek)
        for gap, sure in _gaps(ranges, base, candidate.readable)
        for piece, seek in _cut(gap, sure=sure, size=rules.split_bytes)
    ]
    return Decision(pieces=pieces, offsets=folded)


def _folded(
    candidate: Candidate, progress: Progress
) -> tuple[dict[SourcePartition, SourceOffset | None], int]:
    """When all ranges are done: the entry that replaces them, and where it ends."""
    ranges = sorted(progress.ranges.items())
    if not ranges or _gaps(progress.ranges, progress.anchor, ranges[-1][0][1]):
        return {}, progress.anchor
    if not all(offset.get("done") for _, offset in ranges):
        return {}, progress.anchor
    path = candidate.file.path
    last = max((offset for _, offset in ranges), key=lambda each: number(each, "anchor"))
    records = sum(number(offset, "recordCount") for _, offset in ranges)
    end = number(last, "anchor")
    entry = finished(candidate, progress.entry, anchor=end, more=records, last=last)
    return {whole(path): entry, **{part(path, piece): None for piece, _ in ranges}}, end


def _gaps(
    ranges: Mapping[tuple[int, int], SourceOffset], base: int, end: int
) -> list[tuple[tuple[int, int], bool]]:
    """The stretches of ``base … end`` that no range covers, each with whether a line begins there."""
    gaps = list[tuple[tuple[int, int], bool]]()
    at, sure = base, True
    for (start, stop), offset in sorted(ranges.items()):
        if at < start:
            gaps.append(((at, start), sure))
        done = bool(offset.get("done"))
        at, sure = max(stop, number(offset, "anchor") if done else 0), done
    return [*gaps, ((at, end), sure)] if at < end else gaps


def _cut(gap: tuple[int, int], *, sure: bool, size: int) -> list[tuple[tuple[int, int], bool]]:
    """Ranges of *size* bytes, each with whether it may begin inside a line."""
    start, end = gap
    borders = [*range(start, end, size or end - start), end]
    return [
        ((left, right), left > start or not sure) for left, right in itertools.pairwise(borders)
    ]


def _range_piece(
    candidate: Candidate,
    piece: tuple[int, int],
    *,
    offset: SourceOffset | None,
    seek: bool,
) -> Piece:
    split = Split(
        partition=part(candidate.file.path, piece),
        offset=offset,
        details=replace(
            details_of(candidate),
            start=piece[0],
            stop=piece[1],
            limit=candidate.readable,
            seek=seek,
        ).as_json(),
    )
    return Piece(split=split, weight=piece[1] - max(piece[0], number(offset, "anchor")))
