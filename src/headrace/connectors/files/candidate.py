"""A file that is selected, and what a plan decides about it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from headrace.connect.errors import TaskFailedError
from headrace.connect.partition import SourceOffset, SourcePartition
from headrace.connectors.files.details import SplitDetails
from headrace.connectors.files.prefix_fingerprint import CHECKED, CHECKSUM, DIGEST
from headrace.connectors.files.progress import Progress, number
from headrace.connectors.files.rereading import file_again
from headrace.connectors.files.seen import ObjectSeen
from headrace.sources.sharing import Piece


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A file or an object of a store that is selected now.

    *packed* says that nothing but reading it tells where its records end: it is compressed, or may be, or
    of a format that is read as a whole. *readable* is the byte up to which it may be read: its size, or
    less where its last line is not complete yet. *settled* says that it has been unchanged for long enough
    to be finished; *open_ended* that its last row may be half written although a line ends there. *kept*
    says that it still begins with what offsets prove, *copied* that it is another one than was read to its end, and
    that all its bytes are that one's (``None``: no one knows yet). *tailed* says that it goes on where a shorter one
    ended, maybe without a line end, and *torn* that the record goes on that was the last one then.
    *splittable* says that it may be read in ranges, *unsplit* why a large one may not, *byte_anchors* that the
    anchors of its offsets are bytes.
    """

    file: ObjectSeen
    format: str
    packed: bool
    settled: bool
    readable: int
    splittable: bool = False
    unsplit: str | None = None
    byte_anchors: bool = True
    open_ended: bool = False
    kept: bool = True
    copied: bool | None = False
    tailed: bool = False
    torn: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """What the configuration says about files that change, and about their pieces.

    *grow* says that files may grow where they lie, as those on a disk do, and not objects of a store.
    *cleanup* says that something is to be done to a file that was read to its end, *removes* that it is then
    taken away, so that another one may come under its name.
    """

    follow: bool = False
    changed: str = "fail"
    split_bytes: int = 0
    grow: bool = True
    cleanup: bool = False
    removes: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """What to do with one file: pieces to read, offsets to write, a sentence to tell; or nothing.

    *waits* says that something of it is left for when it has been unchanged for long enough, *again_after*
    in how many seconds to look at it again; or for when there is *marker*, of which that is where it will be.
    *unended* says that what is left is a last record whose end is not there yet. *unsplit* says why a large file
    is read whole, where it was to be split. *unopenable* says why the slot that gets it cannot open it.
    *note* is a sentence for whoever asks, which no one has to be told.
    """

    pieces: Sequence[Piece] = ()
    offsets: Mapping[SourcePartition, SourceOffset | None] = field(
        default_factory=dict[SourcePartition, SourceOffset | None]
    )
    told: str | None = None
    waits: bool = False
    again_after: float | None = None
    marker: str | None = None
    unsplit: str | None = None
    unended: bool = False
    unopenable: str | None = None
    note: str | None = None


NOTHING: Final = Decision()
"""What to do with a file that was read to its end, as most of a million were."""
_KEPT = ("header", "types", CHECKED, CHECKSUM, DIGEST)


def finished(
    candidate: Candidate,
    entry: SourceOffset | None,
    *,
    anchor: int,
    more: int = 0,
    last: SourceOffset | None = None,
    reached: int = 0,
) -> SourceOffset:
    """The entry of a file that was read up to *anchor*, with *more* records than *entry* says.

    *last* is the offset that came so far, when it was not *entry*. *reached* is the byte behind all that was
    read, where the anchor is none.
    """
    file = candidate.file
    known = last or entry or {}
    kept = {key: known[key] for key in _KEPT if key in known}
    end: SourceOffset = {
        "recordCount": number(entry, "recordCount") + more,
        "anchor": anchor,
        "skip": 0,
        "version": file.version,
        "size": file.size,
        "format": candidate.format,
        **kept,
    }
    at_end = max(anchor, reached) >= file.size
    return {**end, "done": True} if candidate.settled and at_end else end


def details_of(candidate: Candidate) -> SplitDetails:
    """What the task is told about every piece of the file."""
    return SplitDetails(
        version=candidate.file.version,
        size=candidate.file.size,
        format=candidate.format,
        settled=candidate.settled,
        tail=candidate.readable == candidate.file.size,
        open_ended=candidate.open_ended,
        modified_ms=candidate.file.modified_ms,
        tailed=candidate.tailed,
    )


def check_format(candidate: Candidate, progress: Progress) -> None:
    """Raise ``TaskFailedError`` when the file would go on in another format than it was begun in."""
    other = progress.formats - {candidate.format}
    if other:
        raise TaskFailedError(
            f"{candidate.file.path}: It was read as {other.pop()} up to position {progress.anchor} and cannot "
            f"go on as {candidate.format}. Take the change of the format's settings back; or {file_again(candidate.file.path)}, "
            "or give the connector another name, under which it reads all its files."
        )
