"""How far a file that may still grow is ready to be read."""

from __future__ import annotations

from dataclasses import dataclass
from io import FileIO

from headrace.connectors.files.local.file_seen import GONE, unreadable

_CHUNK = 64 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Ready:
    """How far a file may be read: the bytes before *stop*.

    *open_ended* says that the last row there may be half written.
    """

    stop: int
    open_ended: bool = False


def last_line_end(path: str, *, start: int, size: int, at_most: int) -> Ready | None:
    """Up to behind the last line feed in ``start … size`` of the file at *path*, or to *start*.

    Where a line is longer than *at_most* bytes it is to *size*, so that it is told at once. ``None`` when
    the file is gone. Raises :class:`~headrace.connect.errors.TaskFailedError` when it may not be read.
    """
    try:
        with open(path, "rb", buffering=0) as file:  # noqa: PTH123
            return _last_line_end(file, start=start, size=size, at_most=at_most)
    except GONE:
        return None
    except OSError as error:
        raise unreadable("file", path, error) from error


def _last_line_end(file: FileIO, *, start: int, size: int, at_most: int) -> Ready:
    end = size
    while end > start and size - end <= at_most:
        begin = max(start, end - _CHUNK)
        file.seek(begin)
        feed = file.read(end - begin).rfind(b"\n")
        if feed >= 0:
            return Ready(stop=begin + feed + 1)
        end = begin
    return Ready(stop=start) if end <= start else Ready(stop=size, open_ended=True)
