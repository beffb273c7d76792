"""Whether a name is free for another file, of which the entry still speaks of the one before, or that one is back. Pure."""

from __future__ import annotations

from typing import Final

from headrace.connectors.files.candidate import Candidate, Decision, Rules
from headrace.connectors.files.prefix_fingerprint import fingerprint_of
from headrace.connectors.files.progress import GONE, PENDING, Progress, as_shown, whole

SUCCESSOR: Final = (
    "It is another file than the one of this name whose records are committed; it is left as it is, and read as a "
    "new one."
)


def has_free_name(progress: Progress, rules: Rules) -> bool:
    """Whether another file may come under the name: all of this one is committed, and it is being taken away.

    With ``files.changed=ignore`` one that is there before it was found gone is left alone.
    """
    if not rules.removes:
        return False
    note = progress.cleanup
    return note == GONE or (note == PENDING and rules.changed != "ignore")


def is_back(candidate: Candidate, progress: Progress, rules: Rules) -> bool:
    """Whether the file that is to be taken away lies there under another inode.

    A place that was away may give others, and so does who puts a copy back.
    """
    if not (rules.removes and rules.grow) or progress.cleanup not in (PENDING, GONE):
        return False
    if all(map(candidate.file.is_still, progress.versions)):
        return False
    if progress.whole_digest(packed=candidate.packed) is not None:
        return candidate.copied is True
    has_its_size = candidate.file.size == progress.size
    return has_its_size and candidate.kept and _is_proven_whole(candidate, progress)


def _is_proven_whole(candidate: Candidate, progress: Progress) -> bool:
    """Whether the fingerprint speaks of the last byte, too; of a packed file no one knows which one that is."""
    fingerprint = fingerprint_of(progress.entry)
    if fingerprint is None:
        return False
    return fingerprint.checked > 0 if candidate.packed else fingerprint.checked == progress.size


def of_returned(candidate: Candidate, progress: Progress) -> Decision:
    """What to do with a file that is back: what is left to do to it, when it is as old as any other has to be."""
    if not candidate.settled:
        return Decision(waits=True)
    file, entry = candidate.file, as_shown(progress.entry or {})
    return Decision(offsets={whole(file.path): {**entry, "version": file.version}})
