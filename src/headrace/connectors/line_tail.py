"""The lines of one file that may be growing, or of a pipe."""

from __future__ import annotations

import logging
import os
import select
import stat
from io import FileIO

import pyarrow as pa

from headrace.connect.errors import TaskFailedError
from headrace.connect.reread_commands import ALL_ANEW
from headrace.formats.blocks import BlockReader, Span, Words
from headrace.formats.chunk import Resume
from headrace.formats.lines import LinesExtractor
from headrace.formats.return_framing import ReturnFraming
from headrace.formats.row_reader import RowReader
from headrace.formats.streams import PlainStream

_LOG = logging.getLogger(__name__)
_BLOCK_BYTES = 1024 * 1024
_PROBE_BYTES = 64 * 1024
_LINE_ENDS = (b"\n", b"\r")


class PipeStream:
    """A pipe or a terminal that is read without waiting; an unterminated last line is ended at its end."""

    def __init__(self, raw: FileIO) -> None:
        self._raw = raw
        self._last = b"\n"
        self._ended = False

    def read_into(self, target: memoryview) -> int:
        """See :class:`~headrace.formats.streams.ByteStream`; 0 also means "nothing now"."""
        if self._ended or not target or not select.select([self._raw], [], [], 0)[0]:
            return 0
        count = self._raw.readinto(target) or 0
        if not count:
            self._ended = True
            if self._last in _LINE_ENDS:
                return 0
            target[:1] = b"\n"
            return 1
        self._last = bytes(target[count - 1 : count])
        return count

    def close(self) -> None:
        """See :class:`~headrace.formats.streams.ByteStream`."""
        self._raw.close()


class LineTail:
    """Complete lines, as they come; made by :func:`open_tail`, used by one thread."""

    def __init__(self, path: str, blocks: BlockReader, reader: RowReader, *, sized: bool) -> None:
        self._path = path
        self._blocks = blocks
        self._reader = reader
        self._sized = sized

    def next_lines(self) -> tuple[pa.StringArray, pa.Int64Array] | None:
        """The next lines and the position behind each, or ``None`` when there is no complete one now.

        Raises :class:`~headrace.connect.errors.RecordError` for a line that is too long, and
        :class:`~headrace.connect.errors.TaskFailedError` when the file cannot be read or has become
        shorter.
        """
        self._blocks.look_again()
        try:
            chunk = self._reader.next_chunk()
        except OSError as error:
            place = f"{self._path}, byte {self._blocks.position}"
            raise _unreadable(place, error) from error
        if chunk is not None:
            return chunk.values, pa.array(chunk.anchors)
        self._check_size()
        return None

    def close(self) -> None:
        """Close the file."""
        self._blocks.close()

    def _check_size(self) -> None:
        if self._sized:
            try:
                size = os.stat(self._path).st_size  # noqa: PTH116
            except FileNotFoundError:
                return
            except OSError as error:
                raise _unreadable(self._path, error) from error
            _check_shrunk(self._path, position=self._blocks.position, size=size)


def open_tail(
    path: str,
    *,
    position: int,
    to_line_start: bool,
    max_rows: int | None,
    max_line_bytes: int,
) -> LineTail | None:
    """The lines of the file at *path* behind *position*, or ``None`` when it does not exist (yet).

    A pipe is read from where it is. Raises
    :class:`~headrace.connect.errors.TaskFailedError` when the file cannot be read, or is shorter than the
    position.
    """
    try:
        raw = FileIO(path)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise _unreadable(path, error) from error
    sized = stat.S_ISREG(os.fstat(raw.fileno()).st_mode)
    try:
        start = _start(raw, path, position=position, to_line_start=to_line_start) if sized else 0
    except OSError as error:
        raw.close()
        raise _unreadable(path, error) from error
    except TaskFailedError:
        raw.close()
        raise
    blocks = BlockReader(
        PlainStream(raw) if sized else PipeStream(raw),
        ReturnFraming(),
        span=Span(start=start, take_tail=False),
        block_bytes=_BLOCK_BYTES,
        max_row_bytes=max_line_bytes,
        encoding=None,
        words=Words(limit_key="file.max.line.bytes"),
    )
    reader = RowReader(
        blocks,
        LinesExtractor(replace=True),
        native_key=path,
        resume=Resume(anchor=start),
        max_rows=max_rows or _BLOCK_BYTES,
        max_row_bytes=max_line_bytes,
    )
    return LineTail(path, blocks, reader, sized=sized)


def line_ahead(path: str, position: int, *, max_line_bytes: int) -> bool | None:
    """Whether the file at *path* has a complete line behind *position*, or something to complain about.

    ``None`` when there is no such file.
    """
    try:
        with FileIO(path) as raw:
            if os.fstat(raw.fileno()).st_size < position:
                return True
            raw.seek(position)
            return _has_line(raw, max_line_bytes)
    except FileNotFoundError:
        return None
    except OSError:
        # The task meets the same and says it where errors are shown.
        return True


def _has_line(raw: FileIO, max_line_bytes: int) -> bool:
    """Whether a line ends in what follows, or is longer than *max_line_bytes* so far."""
    seen, last = 0, b""
    while seen <= max_line_bytes:
        ahead = raw.read(_PROBE_BYTES)
        if not ahead:
            return False
        # A return that is the last byte may be the first half of a line end.
        if b"\n" in ahead or b"\r" in last + ahead[:-1]:
            return True
        seen, last = seen + len(ahead), ahead[-1:]
    return True


def _start(raw: FileIO, path: str, *, position: int, to_line_start: bool) -> int:
    """Go to *position*, or to where its line begins when it lies inside one and that is wanted."""
    _check_shrunk(path, position=position, size=os.fstat(raw.fileno()).st_size)
    chosen = _line_start(raw, path, position=position, to_line_start=to_line_start)
    raw.seek(chosen)
    return chosen


def _line_start(raw: FileIO, path: str, *, position: int, to_line_start: bool) -> int:
    """Where to begin; told when *position* lies inside a line."""
    begin = max(0, position - _BLOCK_BYTES)
    raw.seek(begin)
    before, following = raw.read(position - begin), raw.read(1)
    if not position or before.endswith(b"\n") or (before.endswith(b"\r") and following != b"\n"):
        return position
    line = begin + 1 + max(before.rfind(mark, 0, len(before) - 1) for mark in _LINE_ENDS)
    chosen = line if to_line_start else position
    _LOG.warning(
        "%s: The stored position %d lies inside a line that begins at byte %d; reading goes on at byte %d "
        "(file.position.inside.line=%s).",
        path,
        position,
        line,
        chosen,
        "line-start" if to_line_start else "continue",
    )
    return chosen


def _check_shrunk(path: str, *, position: int, size: int) -> None:
    if size < position:
        raise TaskFailedError(
            f"{path}: The file has {size} bytes, but its first {position} have been read before: it was "
            f"cut or replaced. Put it back; or {ALL_ANEW}."
        )


def _unreadable(path: str, error: OSError) -> TaskFailedError:
    return TaskFailedError(
        f"{path}: The file cannot be read: {error.strerror}. "
        "Check the path and the permissions of the user that runs headrace."
    )
