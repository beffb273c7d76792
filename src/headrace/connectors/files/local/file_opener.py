"""Files on local disk, opened for reading."""

from __future__ import annotations

import os
from io import FileIO

from headrace.connect.errors import ConnectError
from headrace.connectors.files.details import SplitDetails
from headrace.connectors.files.file_opener import HEAD_BYTES, Opened
from headrace.connectors.files.local.file_seen import GONE, FileSeen, look_at, seen, unreadable
from headrace.connectors.files.local.prefix_check import packed_digest
from headrace.connectors.files.local.unopenable import why_unopenable

# A second or two, mostly from the system's cache: one poll must not take longer.
_MOST_READ_TWICE = 1024**3


class LocalFileOpener:
    """See :class:`~headrace.connectors.files.file_opener.FileOpener`."""

    def open(self, path: str, planned: SplitDetails, *, with_head: bool) -> Opened | None:
        """See :class:`~headrace.connectors.files.file_opener.FileOpener`. The head is read in any case."""
        unopenable = why_unopenable(path)
        if unopenable is not None:
            raise unopenable
        try:
            raw = FileIO(path)
        except GONE:
            return None
        head = raw.read(HEAD_BYTES)
        if _is_planned(seen(path, os.fstat(raw.fileno()), head), planned):
            raw.seek(0)
            return Opened(raw=raw, head=head)
        raw.close()
        return None

    def is_as_planned(self, path: str, planned: SplitDetails, *, grown: bool) -> bool:
        """See :class:`~headrace.connectors.files.file_opener.FileOpener`."""
        file = look_at(path)
        if file is None or not _is_planned(file, planned):
            return False
        return grown or file.size == planned.size

    def digest(self, path: str, planned: SplitDetails) -> int | None:
        """See :class:`~headrace.connectors.files.file_opener.FileOpener`. Not of large ones: it is a second reading.

        Nor of one that was modified since it was planned: its bytes need not be those that were read first.
        """
        if planned.size > _MOST_READ_TWICE:
            return None
        return packed_digest(
            path, version=planned.version, size=planned.size, modified_ms=planned.modified_ms
        )

    def failure(self, path: str, error: OSError) -> ConnectError:
        """See :class:`~headrace.connectors.files.file_opener.FileOpener`. A disk that fails does not mend itself."""
        return unreadable("file", path, error)


def _is_planned(file: FileSeen, planned: SplitDetails) -> bool:
    return file.is_still(planned.version) and file.size >= planned.size
