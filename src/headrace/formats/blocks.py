"""An object read block by block, each cut into whole rows, in bounded memory."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from headrace.connect.errors import RecordError
from headrace.connect.partition import OffsetValue
from headrace.formats.byte_order_mark import UTF8, mark_bytes
from headrace.formats.line_framing import CARRIAGE_RETURN, Framing, first_lines
from headrace.formats.refusals import never_closed, too_few_lines
from headrace.formats.rows import RowBlock
from headrace.formats.streams import ByteStream


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """Which bytes of an object to read.

    Rows that begin before *stop* are read, to their end. There are no bytes at *limit* and behind it,
    ``None`` where only the stream's end tells. *take_tail* says that a last row without line end is a row.
    When *start* may lie inside a row, *seek_row* begins with the first row that begins at it or later.
    """

    start: int = 0
    stop: int | None = None
    limit: int | None = None
    take_tail: bool = True
    seek_row: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Words:
    """What errors say: *of* what positions are when not of the object itself; the setting of the row limit."""

    of: str = ""
    limit_key: str = "the limit"


class BlockReader:
    """Cuts a stream that begins at *span*'s start into blocks of rows.

    A row longer than *max_row_bytes* is never held in memory: it raises, and the next call goes on
    behind its line end. A block is overwritten by the next call. *encoding* is what the text is in: a byte
    order mark of UTF-8 at its beginning is left out, any other one is an error; ``None`` where the first bytes
    are text, whatever they are. *words* are for errors.
    """

    def __init__(
        self,
        stream: ByteStream,
        framing: Framing,
        *,
        span: Span,
        block_bytes: int,
        max_row_bytes: int,
        encoding: str | None = UTF8,
        words: Words = Words(),
    ) -> None:
        self._stream = stream
        self._encoding = encoding
        self._words = words
        self._framing = framing
        self._span = span
        self._max_row_bytes = max_row_bytes
        self._capacity = block_bytes
        self._buffer = np.empty(block_bytes, np.uint8)
        self._base = span.start - 1 if span.seek_row else span.start
        self._used = 0
        self._consumed = 0
        self._drained = False
        self._stopped = False
        self._skipping = span.seek_row
        self._preamble = 0 if span.start else framing.preamble
        self._failure: RecordError | OSError | None = None
        self.cut_short = False
        """Whether the object ended before the span's limit, or inside a row that is another reader's."""

    @property
    def position(self) -> int:
        """The byte behind the last row that was returned, skipped or refused."""
        return self._base + self._consumed

    @property
    def broken(self) -> bool:
        """Whether no row can be found behind an error."""
        return self._failure is not None

    @property
    def resyncs(self) -> bool:
        """Whether rows can be read behind one that was refused for its length."""
        return self._framing.resyncs

    def place(self, position: int) -> str:
        """What errors call *position*."""
        return f"byte {position}{self._words.of}"

    def reference(self, start: int, stop: int) -> dict[str, OffsetValue]:
        """Where the bytes from *start* to before *stop* are, for dead letters."""
        return {"from": start, "to": stop, **({"unpacked": True} if self._words.of else {})}

    def too_long(self) -> RecordError:
        """The error for a row that is longer than may be, without its place."""
        what = "What csv.skip.lines leaves out" if self._preamble else "This record"
        return RecordError(
            f"{what} is longer than {self._max_row_bytes} bytes.",
            advice=f"If it is meant to be so long, raise {self._words.limit_key}.",
        )

    def next_block(self) -> RowBlock | None:
        """The next rows; ``None`` when there are no more, now and ever after.

        Raises :class:`~headrace.connect.errors.RecordError` without a position for a row at
        :attr:`position` that is refused, and with one where the stream breaks; ``OSError`` where it cannot
        be read. When it is then :attr:`broken`, every further call raises the same.
        """
        while not self._stopped:
            self._fill()
            if self._skipping:
                self._skip_row()
                continue
            rows = self._rows()
            if rows is not None:
                return rows
            self._explain_rest()
        return None

    def go_behind_refused(self) -> bool:
        """Read to behind the row that was refused last; whether its end is there, and not only a part of it.

        Raises :class:`~headrace.connect.errors.RecordError` with a position where the stream breaks inside
        the row, and ``OSError`` where it cannot be read; it is then :attr:`broken`.
        """
        while self._skipping:
            self._fill()
            if self._skip_row():
                return True
        if self._failure is not None:
            raise self._failure
        return self._whole()

    def look_again(self) -> None:
        """After the end: let the next call find what has been added to the stream since."""
        self._drained = self._stopped = False

    def close(self) -> None:
        """Close the stream."""
        self._stream.close()

    def _rows(self) -> RowBlock | None:
        if self._preamble and not self._pass_preamble():
            return None
        found = self._framing.cut(
            self._buffer[self._consumed : self._used], base=self.position, final=self._whole()
        )
        if not len(found):
            return None
        self._consumed += int(found.nexts[-1])
        return self._before_stop(found)

    def _pass_preamble(self) -> bool:
        """Go behind the lines before the first row; whether all of them were there."""
        rest = self._buffer[self._consumed : self._used]
        found = first_lines(rest, self._preamble, final=self._whole())
        if found is None:
            return False
        end, behind = found
        if end > self._max_row_bytes:
            self._refuse(self.too_long())
        self._consumed += behind
        self._preamble = 0
        return True

    def _whole(self) -> bool:
        """Whether what is in the buffer is all that is left, so that a last row needs no line end."""
        return (
            self._drained and self._failure is None and not self.cut_short and self._span.take_tail
        )

    def _before_stop(self, found: RowBlock) -> RowBlock | None:
        stop = self._span.stop
        if stop is None or found.position(-1) < stop:
            return found
        self._stopped = True
        kept = found.slice(0, int(np.searchsorted(found.starts, stop - found.base)))
        self._consumed = (found.base - self._base) + (int(kept.nexts[-1]) if len(kept) else 0)
        return kept if len(kept) else None

    def _explain_rest(self) -> None:
        """No whole row is in the buffer: read on, end, or say what is wrong with the rest."""
        if self._stopped:
            return
        if self._span.stop is not None and self.position >= self._span.stop:
            # What begins here is another reader's, whatever is wrong with it.
            self._stopped = True
            return
        rest = self._used - self._consumed
        if rest - self._half_end() > self._max_row_bytes:
            self._refuse(self.too_long())
        if not self._drained:
            return
        if self._failure is not None:
            self._break(self._failure)
        if rest and self._whole():
            self._refuse(too_few_lines(self._preamble) if self._preamble else never_closed())
        self._stopped = True

    def _half_end(self) -> int:
        """1 when the last byte may be the first half of a line end, which does not count for a row's length."""
        used = self._used
        return int(not self._drained and used > 0 and self._buffer[used - 1] == CARRIAGE_RETURN)

    def _refuse(self, error: RecordError) -> None:
        """Raise *error* for the row at the position, and go on behind it if its end can be found."""
        if not self._framing.resyncs:
            self._drained = True
            self._used = self._consumed
            self._break(error)
        self._skipping = True
        raise error

    def _break(self, failure: RecordError | OSError) -> None:
        """Raise *failure*, now and ever after."""
        self._failure = failure
        raise failure

    def _fill(self) -> None:
        """Move what is left to the front and fill the buffer behind it."""
        if self._drained:
            return
        rest = self._used - self._consumed
        if rest == len(self._buffer):
            self._grow()
        if self._consumed:
            self._buffer[:rest] = self._buffer[self._consumed : self._used].copy()
        self._base += self._consumed
        self._consumed, self._used = 0, rest
        at_start = self._base == 0 and rest == 0
        self._read()
        if at_start and self._encoding is not None:
            self._read_mark(self._encoding)

    def _grow(self) -> None:
        bigger = np.empty(len(self._buffer) + self._capacity, np.uint8)
        bigger[: len(self._buffer)] = self._buffer
        self._buffer = bigger

    def _read(self) -> None:
        target = self._buffer.data
        while self._used < len(self._buffer) and not self._drained:
            room = len(self._buffer) - self._used
            if self._span.limit is not None:
                room = min(room, self._span.limit - self._base - self._used)
            try:
                count = (
                    self._stream.read_into(target[self._used : self._used + room])
                    if room > 0
                    else 0
                )
            except RecordError as error:
                self._failure = error.located("", self.place(self._base + self._used))
                count = 0
            except OSError as error:
                self._failure, count = error, 0
            self._used += count
            self._drained = not count
        limit = self._span.limit
        self.cut_short = self._drained and limit is not None and self._base + self._used < limit

    def _read_mark(self, encoding: str) -> None:
        """Look at an object's first bytes for a byte order mark; one of UTF-8 is not part of a row."""
        try:
            self._consumed = mark_bytes(self._buffer[: min(self._used, 3)].tobytes(), encoding)
        except RecordError as error:
            self._drained, self._used = True, 0
            self._failure = error

    def _skip_row(self) -> bool:
        """Drop bytes to behind the next line end, a buffer at a time; whether it was found."""
        rows = self._framing.cut(
            self._buffer[self._consumed : self._used], base=self.position, final=False
        )
        if len(rows):
            self._consumed += int(rows.nexts[0])
            self._skipping = False
            return True
        if self._drained:
            self._consumed = self._used
            self._skipping = False
            # Whoever begins here later would take the rest of the row for a whole one.
            self.cut_short = self.cut_short or not self._whole()
        else:
            # The last byte may be the first one of a line end.
            self._consumed = max(self._consumed, self._used - 1)
        return False
