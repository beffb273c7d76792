"""Whether a file that grew goes on inside the record that was its last one."""

from __future__ import annotations

from io import FileIO

from headrace.connectors.files.local.file_seen import GONE, FileSeen, unreadable
from headrace.connectors.files.progress import Progress
from headrace.connectors.files.tail import is_torn


def is_torn_at(file: FileSeen, progress: Progress) -> bool:
    """Whether *file* is longer than it was at *progress*, and the last record of then has become longer.

    Reads three bytes. Raises :class:`~headrace.connect.errors.TaskFailedError` when it may not be read.
    """
    if file.size <= progress.size:
        return False
    try:
        with FileIO(file.path) as raw:
            return is_torn(raw, progress.anchor)
    except GONE:
        return False
    except OSError as error:
        raise unreadable("file", file.path, error) from error
