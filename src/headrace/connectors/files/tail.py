"""Files that are replaced by longer ones and read on from where they were read to: ``files.changed=tail``."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from headrace.connect.errors import TaskFailedError
from headrace.connectors.files.candidate import Candidate
from headrace.connectors.files.progress import Progress
from headrace.formats.chunk import Resume
from headrace.formats.readable import Readable

if TYPE_CHECKING:
    from headrace.connect.config import Problem
    from headrace.connectors.files.config import FilesConfig

TAIL: Final = "tail"
"""The value of ``files.changed``."""
ADVICE: Final = (
    "files.changed=tail reads on where a file is longer now and begins as it did; it has to be of JSON lines, "
    "CSV or lines, not compressed, and without ranges of files.split.bytes."
)
_KEY: Final = "files.changed"
# What the record ended with, and a line end of Windows.
_EDGE_BYTES: Final = 3
_FORMATS: Final = ("auto", "jsonl", "csv", "lines")


def tail_problems(config: FilesConfig) -> Iterator[Problem]:
    """Settings that leave no place to read on from."""
    if config.changed != TAIL:
        return
    if config.format not in _FORMATS:
        yield (
            _KEY,
            f"A file of {config.format} is not read on where it ended: tail needs lines or rows.",
        )
    if config.compression not in ("auto", "none"):
        yield _KEY, "A compressed file is not read on where it ended: tail needs files as they are."
    elif config.root is not None and config.compression != "none":
        told = "In a store nothing is read of an object before it is planned, so that tail needs"
        yield _KEY, f"{told} files.compression=none."
    if config.split_bytes:
        yield (
            _KEY,
            "A file that is read in ranges has several ends. Remove files.split.bytes, or tail.",
        )
    if config.after_commit != "keep":
        yield (
            _KEY,
            "With tail no file is ever read to its end for good: it needs files.after.commit=keep.",
        )
    if config.tells_last:
        yield (
            _KEY,
            "With tail a file may go on: no record is the last, as files.headers or files.fields want it.",
        )


def can_go_on(candidate: Candidate, progress: Progress) -> bool:
    """Whether the file has one place to read on from."""
    return not candidate.packed and not progress.ranges


def behind_line_end(raw: Readable, resume: Resume, path: str) -> Resume:
    """*resume*, or the place behind the line end that the last record had not got yet.

    Closes *raw* when it raises: :class:`~headrace.connect.errors.TaskFailedError` where that record goes on
    instead, and what *raw* does.
    """
    if not resume.anchor:
        return resume
    try:
        return _behind_line_end(raw, resume, path)
    except BaseException:
        raw.close()
        raise


def is_torn(raw: Readable, anchor: int) -> bool:
    """Whether the record that ended before byte *anchor* goes on there, and does not end."""
    return anchor > 0 and _line_end_at(raw, anchor) is None


def torn_told(anchor: int) -> str:
    """What people are told of a file whose last record goes on at byte *anchor*."""
    return f"Its last record was sent without a line end, and is longer now: it goes on at byte {anchor}."


def _behind_line_end(raw: Readable, resume: Resume, path: str) -> Resume:
    length = _line_end_at(raw, resume.anchor)
    if length is None:
        raise TaskFailedError(
            f"{path}: {torn_told(resume.anchor)} Say with files.changed=reread that it is to be read again from "
            "its beginning, or with files.changed=ignore that it is to be left alone."
        )
    return replace(resume, anchor=resume.anchor + length)


def _line_end_at(raw: Readable, anchor: int) -> int | None:
    raw.seek(anchor - 1)
    edge = b""
    while more := raw.read(_EDGE_BYTES - len(edge)):
        edge += more
    raw.seek(0)
    return _length_of_line_end(edge[:1], edge[1:])


def _length_of_line_end(before: bytes, behind: bytes) -> int | None:
    """How much of a line end is *behind* a record that ended with *before*; ``None`` where there is none at all."""
    if before == b"\n" or not behind:
        return 0
    if behind[:1] == b"\n" or behind == b"\r":
        return 1
    return 2 if behind == b"\r\n" and before != b"\r" else None
