"""What to read of each file or object next. Pure: from what was seen and what its offsets say."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from headrace.connect.errors import TaskFailedError
from headrace.connect.partition import SourceOffset
from headrace.connect.task import Split
from headrace.connectors.files.candidate import (
    Candidate,
    Decision,
    Rules,
    check_format,
    details_of,
    finished,
)
from headrace.connectors.files.changed import (
    READ_ON,
    advice,
    grew,
    noun_of,
    replaced,
    same_size,
    shrank,
)
from headrace.connectors.files.cleanup.free_names import (
    SUCCESSOR,
    has_free_name,
    is_back,
    of_returned,
)
from headrace.connectors.files.counts import check_counts
from headrace.connectors.files.progress import (
    CLEANUP,
    PENDING,
    Progress,
    number,
    part,
    whole,
)
from headrace.connectors.files.quarantine import release
from headrace.connectors.files.ranges import of_ranges
from headrace.connectors.files.seen import ObjectSeen
from headrace.connectors.files.tail import TAIL, can_go_on, torn_told
from headrace.sources.quarantine import quarantine_told
from headrace.sources.sharing import Piece

_UNCOMPARED: Final = "It is being compared with the file of this name that was read to its end."


def decide(candidate: Candidate, progress: Progress, rules: Rules) -> Decision:
    """What to do with one file.

    Raises :class:`~headrace.connect.errors.TaskFailedError` for a file that is not the one that was read
    before, unless *rules* say otherwise, for one that would now be understood differently, and for offsets
    that count in what are no numbers.
    """
    check_counts(candidate.file.path, progress)
    if candidate.copied is None:
        # Neither sent nor judged, and nothing is done to it.
        return Decision(waits=True, note=_UNCOMPARED if candidate.settled else None)
    if candidate.copied and not is_back(candidate, progress, rules):
        # What is to be done to files that are read from now on is not done to it.
        return of_returned(candidate, progress)
    decision = _decided(candidate, progress, rules)
    return _with_cleanup(decision) if rules.cleanup and decision.offsets else decision


def _with_cleanup(decision: Decision) -> Decision:
    """*decision* with a note in each entry that says that a file was read to its end."""
    offsets = {
        partition: {**offset, CLEANUP: PENDING} if offset and offset.get("done") else offset
        for partition, offset in decision.offsets.items()
    }
    return replace(decision, offsets=offsets)


def _decided(candidate: Candidate, progress: Progress, rules: Rules) -> Decision:
    if progress.restarted:
        return _again(candidate, progress.entry, progress, rules)
    if progress.quarantined is not None:
        if _is_still_damaged(candidate, progress, rules):
            return _in_quarantine(candidate, progress, rules)
        if not progress.record_count:
            # Nothing of it was sent, so that there is nothing that another one would have to go on from.
            if progress.ranges:
                return _again(candidate, None, progress, rules)
            progress = Progress()
    if is_back(candidate, progress, rules):
        return of_returned(candidate, progress)
    return _of_progress(candidate, progress, rules)


def _of_progress(candidate: Candidate, progress: Progress, rules: Rules) -> Decision:
    if candidate.packed and not candidate.settled and not _is_as_read(candidate.file, progress):
        # It may be being replaced by a whole one; until then nothing is to be learnt from it.
        return Decision(waits=True)
    complaint = _change(candidate, progress, rules)
    if _begins_again(candidate, progress, complaint):
        return _again(candidate, None, progress, rules)
    if complaint:
        return _of_another(candidate, progress, rules=rules, complaint=complaint)
    if rules.changed == TAIL and not _is_unchanged(candidate.file, progress):
        return _of_tail(candidate, progress, rules)
    if not progress.done:
        return _of_unfinished(candidate, progress, rules)
    return _of_done(candidate, progress, rules)


def _begins_again(candidate: Candidate, progress: Progress, complaint: str | None) -> bool:
    """Whether another file, or more of one, is there than the one of which nothing was sent.

    An offset without a version is a person's, who may want nothing to be sent before its place.
    """
    if progress.is_new or progress.record_count or not progress.versions:
        return False
    return bool(complaint) or (progress.done and not _is_unchanged(candidate.file, progress))


def _of_another(
    candidate: Candidate, progress: Progress, *, rules: Rules, complaint: str
) -> Decision:
    """What to do with a file that is not the one that was read."""
    if has_free_name(progress, rules):
        return replace(_again(candidate, None, progress, rules), told=SUCCESSOR)
    return _of_changed(candidate, progress, rules=rules, complaint=complaint)


def _of_done(candidate: Candidate, progress: Progress, rules: Rules) -> Decision:
    """What to do with a file that was read to its end and is still the same one, which may have grown since."""
    grown = candidate.file.size - progress.size if rules.grow else 0
    # Of a file that a person calls done no one knows whether it grew.
    if not grown or not (rules.follow or progress.size):
        return Decision()
    if candidate.torn:
        return _of_changed(candidate, progress, rules=rules, complaint=torn_told(progress.anchor))
    if can_go_on(candidate, progress) and progress.proven:
        # In one piece: what comes before a range is not compared.
        tailed = replace(candidate, tailed=True)
        return _of_unfinished(tailed, progress, replace(rules, split_bytes=0))
    if rules.follow:
        return _of_unfinished(candidate, progress, rules)
    return _of_changed(candidate, progress, rules=rules, complaint=grew(grown))


def _of_tail(candidate: Candidate, progress: Progress, rules: Rules) -> Decision:
    """What to do with a file that is not new, or with another one that begins as it did and is as long."""
    tailed = can_go_on(candidate, progress)
    grown = candidate.file.size - progress.size
    if progress.done and not grown:
        return Decision(told=same_size(noun_of(rules)))
    if progress.done and not tailed:
        return _of_changed(candidate, progress, rules=rules, complaint=grew(grown))
    decision = _of_unfinished(replace(candidate, tailed=tailed), progress, rules)
    goes_on = tailed and grown > 0 and bool(progress.size)
    return replace(decision, note=READ_ON) if goes_on else decision


def _change(candidate: Candidate, progress: Progress, rules: Rules) -> str | None:
    """Why the file is not the one that was read, or ``None``.

    What fingerprints say counts, and not what lies behind them: a bad record may have been put right. Without
    fingerprints, and for a file that was read to its end and is not followed, inode, first bytes and size have to
    do. An object that cannot grow is what its version says. Where the anchors of ranges are no bytes, nothing says what a longer
    file has in them.
    """
    file = candidate.file
    tails = rules.changed == TAIL and can_go_on(candidate, progress)
    if not rules.grow and not tails:
        return None if _is_same(file, progress) else replaced(noun_of(rules))
    read = 0 if candidate.packed else progress.furthest
    expected = read if progress.proven and not progress.done else max(progress.size, read)
    if file.size < expected:
        return shrank(file.size, progress.size, read, noun_of(rules))
    moved = progress.ranges and not candidate.byte_anchors and file.size > progress.size > 0
    if not candidate.kept or moved:
        return replaced(noun_of(rules))
    if not rules.grow or (tails and not progress.size):
        return None
    complete = progress.done and not rules.follow
    if progress.proven and (tails or not (complete or _is_another(candidate, progress))):
        return None
    return None if _is_same(file, progress) else replaced(noun_of(rules))


def _is_another(candidate: Candidate, progress: Progress) -> bool:
    """Whether all bytes of the file were compared, and are not those of the one that was read to its end."""
    was_compared = progress.whole_digest(packed=candidate.packed) is not None
    is_as_long = candidate.file.size == progress.size
    return (
        was_compared and is_as_long and not (candidate.copied or _is_same(candidate.file, progress))
    )


def _is_same(file: ObjectSeen, progress: Progress) -> bool:
    return all(file.is_still(version) for version in progress.versions)


def _is_as_read(file: ObjectSeen, progress: Progress) -> bool:
    """Whether *file* was read to its end and has not become another one since."""
    return progress.done and _is_unchanged(file, progress)


def _is_unchanged(file: ObjectSeen, progress: Progress) -> bool:
    return file.size == progress.size and _is_same(file, progress)


def _is_still_damaged(candidate: Candidate, progress: Progress, rules: Rules) -> bool:
    """Whether it is the file that was put in quarantine.

    That it grew puts nothing right: each growth would be read for one more letter.
    """
    if not rules.grow:
        return _is_unchanged(candidate.file, progress)
    is_as_long = candidate.file.size >= progress.size
    return is_as_long and candidate.kept and _is_same(candidate.file, progress)


def _in_quarantine(candidate: Candidate, progress: Progress, rules: Rules) -> Decision:
    """What is left to do with a file that has a place behind which nothing can be read."""
    told = quarantine_told(progress.quarantined, release(candidate.file.path))
    if not progress.ranges:
        return Decision(told=told)
    # It is one of its ranges; the others can be read.
    return replace(_of_unfinished(candidate, progress, rules), told=told)


def _again(
    candidate: Candidate, entry: SourceOffset | None, progress: Progress, rules: Rules
) -> Decision:
    """The file from where *entry* says on, without its ranges.

    In one piece: ranges would have the source partitions of those that are removed here.
    """
    again = _of_unfinished(candidate, Progress(entry=entry), replace(rules, split_bytes=0))
    if not again.pieces and not again.offsets:
        return again
    stale = {part(candidate.file.path, piece): None for piece in progress.ranges}
    return replace(again, offsets={**stale, **again.offsets})


def _of_changed(
    candidate: Candidate, progress: Progress, *, rules: Rules, complaint: str
) -> Decision:
    if rules.changed in ("fail", TAIL):
        told = advice(candidate, progress, rules)
        raise TaskFailedError(f"{candidate.file.path}: {complaint} {told}")
    if rules.changed == "ignore":
        return Decision(told=f"{complaint} It is left alone, as files.changed=ignore says.")
    told = f"{complaint} It is read again from its beginning, as files.changed=reread says."
    return replace(_again(candidate, None, progress, rules), told=told)


def _of_unfinished(candidate: Candidate, progress: Progress, rules: Rules) -> Decision:
    decision = _of_what_is_ready(candidate, progress, rules)
    if decision.pieces:
        return decision
    unended = not candidate.packed and candidate.readable < candidate.file.size
    # A followed file's last line waits for its line end, however old it gets.
    young = candidate.packed or (unended and not rules.follow)
    return replace(decision, waits=young and not candidate.settled, unended=unended)


def _of_what_is_ready(candidate: Candidate, progress: Progress, rules: Rules) -> Decision:
    left = candidate.readable - progress.anchor
    if candidate.packed and not candidate.settled:
        # Nothing but reading it tells where a compressed file ends, so it is read when it is complete.
        return Decision()
    large = 0 < rules.split_bytes < left and _may_be_cut(candidate, progress)
    if (progress.ranges or large) and not number(progress.entry, "skip"):
        return of_ranges(candidate, progress, rules)
    if left > 0 or candidate.packed:
        return Decision(pieces=_of_whole(candidate, progress.entry), unsplit=candidate.unsplit)
    if candidate.settled and progress.anchor == candidate.file.size and not progress.done:
        end = finished(candidate, progress.entry, anchor=progress.anchor)
        return Decision(offsets={whole(candidate.file.path): end})
    return Decision()


def _may_be_cut(candidate: Candidate, progress: Progress) -> bool:
    """Whether the file can be read in ranges, and what is left of it begins at a byte that is known."""
    entry = progress.entry or {}
    begun = number(entry, "anchor" if "anchor" in entry else "recordCount") > 0
    known = candidate.byte_anchors and "anchor" in entry
    return candidate.splittable and (known or not begun)


def _of_whole(candidate: Candidate, entry: SourceOffset | None) -> Sequence[Piece]:
    check_format(candidate, Progress(entry=entry))
    stop = None if candidate.packed else candidate.readable
    split = Split(
        partition=whole(candidate.file.path),
        offset=entry,
        details=replace(details_of(candidate), stop=stop, limit=stop).as_json(),
    )
    left = candidate.file.size if candidate.packed else candidate.readable - number(entry, "anchor")
    return (Piece(split=split, weight=left),)
