"""Whether a growing file of quoted rows has a whole one that was not read yet."""

from __future__ import annotations

from collections.abc import Sequence
from io import FileIO

from headrace.connect.errors import RecordError
from headrace.connectors.files.local.file_seen import GONE, FileSeen, unreadable
from headrace.connectors.files.local.path_cache import PathCache
from headrace.formats.blocks import BlockReader, Span
from headrace.formats.line_framing import Framing
from headrace.formats.streams import PlainStream

_BLOCK_BYTES = 64 * 1024


class CompleteRowProbe:
    """Looks behind what was read; once for as long as the file does not change."""

    def __init__(self) -> None:
        self._none_in = PathCache[tuple[int, int, int, int]]()

    def keep(self, shown: Sequence[str]) -> None:
        """Forget all files that a listing has not *shown*."""
        self._none_in.keep(shown)

    def find(self, file: FileSeen, framing: Framing, *, start: int, at_most: int) -> bool | None:
        """Whether a row that begins at byte *start* ends before the end of *file*; ``None`` if it is gone.

        Also where there is something to complain about, such as more than *at_most* bytes without an end.
        Raises :class:`~headrace.connect.errors.TaskFailedError` when the file may not be read.
        """
        asked = (file.size, file.inode, file.touched_ns, start)
        if self._none_in.get(file.path) == asked:
            return False
        try:
            with FileIO(file.path) as raw:
                found = _has_row(raw, framing, start=start, end=file.size, at_most=at_most)
        except GONE:
            return None
        except OSError as error:
            raise unreadable("file", file.path, error) from error
        if not found:
            self._none_in[file.path] = asked
        return found


def _has_row(raw: FileIO, framing: Framing, *, start: int, end: int, at_most: int) -> bool:
    raw.seek(start)
    blocks = BlockReader(
        PlainStream(raw),
        framing,
        span=Span(start=start, limit=end, take_tail=False),
        block_bytes=_BLOCK_BYTES,
        max_row_bytes=at_most,
    )
    try:
        return blocks.next_block() is not None
    except RecordError:
        # The task meets the same and says it where errors are shown.
        return True
