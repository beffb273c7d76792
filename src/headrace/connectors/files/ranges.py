"""A file in ranges that several slots read. Pure.

Once a range has an offset it stays as it is until all ranges are done; what no range covers is cut again.
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
from headrace.connectors.files.progress import Progress, number, part, whole
from headrace.formats.avro.search import FIRST_BLOCK
from headrace.sources.offset_entry import is_closed
from headrace.sources.sharing import Piece


def of_ranges(candidate: Candidate, progress: Progress, rules: Rules) -> Decision:
    """The ranges of the file that are still to be read; when all are done, the entry for the whole."""
    check_format(candidate, progress)
    folded, base = _folded(candidate, progress)
    ranges = {} if folded else progress.ranges
    pieces = [
        _range_piece(candidate, piece, offset=offset, seek=_begins(candidate, piece, offset))
        for piece, offset in sorted(ranges.items())
        if not is_closed(offset)
    ]
    pieces += [
        _range_piece(candidate, piece, offset=None, seek=seek)
        for gap, sure in _gaps(ranges, base, candidate.readable)
        for piece, seek in _cut(gap, sure=sure and not candidate.packed, size=rules.split_bytes)
    ]
    return Decision(pieces=pieces, offsets=folded)


def _folded(
    candidate: Candidate, progress: Progress
) -> tuple[dict[SourcePartition, SourceOffset | None], int]:
    """When all ranges are done: the entry that replaces them; and the byte behind what was read as a whole."""
    ranges, path = progress.ranges, candidate.file.path
    stop = max((to for _, to in ranges), default=0)
    if not ranges or _gaps(ranges, progress.anchor, stop):
        return {}, progress.anchor
    if not all(offset.get("done") for offset in ranges.values()):
        return {}, progress.anchor
    last = max(ranges.values(), key=lambda each: number(each, "anchor"))
    end = number(last, "anchor")
    reached = max(end, stop)
    if candidate.packed and reached < candidate.file.size:
        # Where a range of blocks ends no block need begin, so that nothing could go on there as a whole.
        return {}, progress.anchor
    records = sum(number(offset, "recordCount") for offset in ranges.values())
    entry = finished(
        candidate, progress.entry, anchor=end, more=records, last=last, reached=reached
    )
    return {whole(path): entry, **{part(path, piece): None for piece in ranges}}, reached


def _gaps(
    ranges: Mapping[tuple[int, int], SourceOffset], base: int, end: int
) -> list[tuple[tuple[int, int], bool]]:
    """The stretches of ``base … end`` that no range covers, each with whether a line begins there.

    A range whose first block is told covers nothing before that.
    """
    gaps = list[tuple[tuple[int, int], bool]]()
    at, sure, joined = base, True, True
    for begin, piece in sorted(
        (max(piece[0], number(offset, FIRST_BLOCK)), piece) for piece, offset in ranges.items()
    ):
        offset = ranges[piece]
        # Where a range before it is not done, that may still read up to its first block.
        start = begin if joined else piece[0]
        if at < start:
            gaps.append(((at, start), sure))
        done = bool(offset.get("done"))
        joined = joined and done and at >= begin
        at, sure = max(at, piece[1], number(offset, "anchor") if done else 0), done
    return [*gaps, ((at, end), sure)] if at < end else gaps


def _cut(gap: tuple[int, int], *, sure: bool, size: int) -> list[tuple[tuple[int, int], bool]]:
    """Ranges of *size* bytes, each with whether it may begin inside a line."""
    start, end = gap
    borders = [*range(start, end, size or end - start), end]
    return [
        ((left, right), left > start or not sure) for left, right in itertools.pairwise(borders)
    ]


def _begins(candidate: Candidate, piece: tuple[int, int], offset: SourceOffset) -> bool:
    """Whether a range that has an offset is read from its beginning, which may lie inside a line."""
    return "anchor" not in offset and (candidate.packed or piece[0] > 0)


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
            # A range of blocks ends behind one, wherever that is.
            limit=None if candidate.packed else candidate.readable,
            seek=seek,
        ).as_json(),
    )
    return Piece(split=split, weight=piece[1] - max(piece[0], number(offset, "anchor")))
