"""Entries of a listing that cannot be opened: names that are not UTF-8, links that lead to themselves.

Each is planned like a file, so that a slot fails with it or, with ``errors.tolerance=all``, puts it in quarantine; the
others are read.
"""

from __future__ import annotations

import os

from headrace.connect.errors import RecordError, TaskFailedError
from headrace.connect.task import Split
from headrace.connectors.files.candidate import Decision
from headrace.connectors.files.details import SplitDetails
from headrace.connectors.files.local.file_seen import is_loop
from headrace.connectors.files.local.identity import version_of
from headrace.connectors.files.progress import Progress, whole
from headrace.sources.quarantine import quarantine_told
from headrace.sources.sharing import Piece

LOOP = "It is a symbolic link that leads to itself."
_NAME = "The file's name is not UTF-8, so that no offset can be stored for it."
_LOOP_ADVICE = "Remove the link, or leave its name out with files.exclude."
_NAME_ADVICE = "Rename it, or leave its name out with files.exclude."
# No file has this inode. What lies there later is another file, of which nothing was sent.
_VERSION = version_of(0, b"")
# No path of a listing has two slashes together behind its first one, so that no other file has the offset of such a name.
_ESCAPED = "//"


def shown(path: str) -> str:
    """*path*, or how one is written that is not UTF-8; two such names are never written alike."""
    try:
        path.encode()
    except UnicodeEncodeError:
        folder, _, name = path.replace("\\", "\\\\").rpartition("/")
        octets = os.fsencode(f"{folder or '/'}{_ESCAPED}{name}")
        return octets.decode("utf-8", "backslashreplace")
    return path


def is_escaped(path: str) -> bool:
    """Whether *path* is how :func:`shown` writes a name that is not UTF-8, and leads nowhere."""
    return _ESCAPED in path[1:]


def why_unopenable(path: str) -> RecordError | None:
    """What to say of what a listing shows as *path*; ``None`` where it can be opened, or is gone."""
    if is_escaped(path):
        return RecordError(_NAME, native_key=path, advice=_NAME_ADVICE)
    try:
        os.stat(path)  # noqa: PTH116 (as every look at a file)
    except OSError as error:
        if is_loop(error):
            return RecordError(LOOP, native_key=path, advice=_LOOP_ADVICE)
    return None


def of_unopenable(path: str, error: RecordError, progress: Progress, form: str) -> Decision:
    """What to do with what *error* is about: have a slot meet it, which knows what is tolerated.

    Raises it as :class:`~headrace.connect.errors.TaskFailedError` where records were sent of a file that lay there:
    what is left of that is not damaged but gone.
    """
    if progress.quarantined is not None and not progress.ranges:
        return Decision(told=quarantine_told(progress.quarantined, error.advice or ""))
    if progress.record_count or progress.ranges:
        raise TaskFailedError(str(error))
    details = SplitDetails(version=_VERSION, size=0, format=form, settled=True, tail=True)
    split = Split(partition=whole(path), offset=None, details=details.as_json())
    reason = f"{error.reason} {error.advice}"
    return Decision(pieces=(Piece(split=split, weight=0),), unopenable=reason)
