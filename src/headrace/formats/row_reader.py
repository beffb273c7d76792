"""An object of rows, such as lines, read in chunks."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

import numpy as np

from headrace.connect.errors import ConnectError, RecordError
from headrace.connect.partition import OffsetValue
from headrace.connect.schema import Schema
from headrace.formats.blocks import BlockReader
from headrace.formats.chunk import Chunk, Resume, numbered
from headrace.formats.damage import DamagedObjectError
from headrace.formats.row_extractor import BadRow, RowExtractor
from headrace.formats.rows import RowBlock
from headrace.formats.stride import Stride
from headrace.formats.unreadable import Unread, UnreadableRecordError


class RowReader:
    """An ``ObjectReader`` of *blocks*, which begin at *resume*'s anchor, through *extractor*.

    A bad row raises once, after everything before it was returned; the next call goes on behind it, and
    it counts as a record. *native_key* is what errors call the object.
    """

    def __init__(
        self,
        blocks: BlockReader,
        extractor: RowExtractor,
        *,
        native_key: str,
        resume: Resume,
        max_rows: int,
        max_row_bytes: int,
    ) -> None:
        self._blocks = blocks
        self._extractor = extractor
        self._native_key = native_key
        self._stride = Stride(max_rows)
        self._max_row_bytes = max_row_bytes
        self._skip = resume.skip
        self._count = resume.record_count - resume.skip
        self._rows: RowBlock | None = None
        self._error: ConnectError | OSError | None = None
        self._fatal: DamagedObjectError | OSError | None = None

    @property
    def value_schema(self) -> Schema | None:
        """See :class:`~headrace.formats.object_reader.ObjectReader`."""
        return self._extractor.value_schema

    @property
    def place(self) -> Resume:
        """See :class:`~headrace.formats.object_reader.ObjectReader`; blank rows included."""
        return Resume(anchor=self._blocks.position, record_count=self._count)

    @property
    def cut_short(self) -> bool:
        """See :class:`~headrace.formats.object_reader.ObjectReader`."""
        return self._blocks.cut_short

    def constants(self) -> Mapping[str, OffsetValue]:
        """See :class:`~headrace.formats.object_reader.ObjectReader`."""
        return self._extractor.constants()

    def next_chunk(self) -> Chunk | None:
        """See :class:`~headrace.formats.object_reader.ObjectReader`."""
        while True:
            if self._rows is None and self._error is None:
                self._advance()
            self._raise_pending()
            if self._rows is None:
                return None
            chunk = self._chunk(self._rows)
            if chunk is not None:
                return chunk

    def close(self) -> None:
        """See :class:`~headrace.formats.object_reader.ObjectReader`."""
        self._blocks.close()

    def _raise_pending(self) -> None:
        error, self._error = self._error, self._fatal
        if error is not None:
            raise error

    def _advance(self) -> None:
        """Read the next block; an error waits until all before it was returned."""
        try:
            while True:
                try:
                    self._rows = self._blocks.next_block()
                    return
                except RecordError as error:
                    if self._blocks.broken or self._extractor.needs_header:
                        self._break(error)
                        return
                    if self._pass_over(error):
                        return
        except OSError as error:
            self._error = self._fatal = error

    def _break(self, error: RecordError) -> None:
        """Nothing behind *error* can be read."""
        self._count += error.position is None
        place = f"{self._blocks.place(self._blocks.position)} (record {self._count})"
        self._error = self._fatal = DamagedObjectError(error.located(self._native_key, place))

    def _pass_over(self, error: RecordError) -> bool:
        """Go behind the row that *error* refuses; whether it is to be told, because it was not before."""
        start = self._blocks.position
        try:
            has_end = self._blocks.go_behind_refused()
        except RecordError as damage:
            self._break(damage)
            return True
        self._count += 1
        if self._skip:
            self._skip -= 1
            return False
        place = f"{self._blocks.place(start)} (record {self._count})"
        if has_end:
            self._error = self._unreadable(
                error.reason, error.advice, place=place, borders=(start, self._blocks.position)
            )
        else:
            # What is there may be the beginning of a row: no one knows where the next one begins.
            self._error = error.located(self._native_key, place)
        return True

    def _chunk(self, block: RowBlock) -> Chunk | None:
        rows, refused = self._before_long(block.slice(0, self._stride.rows))
        found = self._extractor.extract(rows)
        picked = rows if found.rows is None else rows.pick(found.rows)
        first = self._count + 1
        self._count += len(found.values)
        dropped = min(self._skip, len(found.values))
        self._skip -= dropped
        bad = found.bad or refused
        if bad is not None and self._extractor.needs_header:
            # Passed over, it would make a header of the row behind it.
            bad = dataclasses.replace(bad, fatal=True)
        self._go_behind(block, rows=rows, refused=bad)
        if self._rows is None and self._error is None:
            self._advance()
        if dropped == len(found.values):
            return None
        return Chunk(
            values=found.values,
            anchors=picked.nexts[: len(found.values)] + picked.base,
            skips=np.zeros(len(found.values), np.int64),
            counts=numbered(first, len(found.values)),
            constants=self._extractor.constants(),
            last=self._rows is None and self._error is None,
        ).behind(dropped)

    def _before_long(self, rows: RowBlock) -> tuple[RowBlock, BadRow | None]:
        """The rows before the first one that is too long, and that one."""
        over = np.flatnonzero(rows.ends - rows.starts > self._max_row_bytes)
        if not len(over):
            return rows, None
        error = self._blocks.too_long()
        bad = BadRow(
            row=int(over[0]),
            reason=error.reason,
            advice=error.advice,
            fatal=not self._blocks.resyncs,
        )
        return rows.slice(0, bad.row), bad

    def _go_behind(self, block: RowBlock, *, rows: RowBlock, refused: BadRow | None) -> None:
        """Keep what comes behind *rows*, or behind the refused one."""
        done = len(rows)
        if refused is None:
            self._stride.passed(done)
        else:
            done = refused.row + 1
            self._count += 1
            self._refuse(refused, block)
            self._stride.failed(refused.row)
        self._rows = block.slice(done) if done < len(block) else None

    def _refuse(self, refused: BadRow, block: RowBlock) -> None:
        start = block.position(refused.row)
        place = f"{self._blocks.place(start)} (record {self._count})"
        if refused.fatal:
            damage = RecordError(
                refused.reason,
                native_key=self._native_key,
                position=place,
                advice=refused.advice,
            )
            self._error = self._fatal = DamagedObjectError(damage)
        elif self._skip:
            self._skip -= 1
        else:
            raw = block.row(refused.row)
            self._error = self._unreadable(
                refused.reason,
                refused.advice,
                place=place,
                borders=(start, block.base + int(block.nexts[refused.row])),
                raw=raw if len(raw) <= self._max_row_bytes else None,
            )

    def _unreadable(
        self,
        reason: str,
        advice: str | None,
        *,
        place: str,
        borders: tuple[int, int],
        raw: bytes | None = None,
    ) -> UnreadableRecordError:
        return UnreadableRecordError(
            reason,
            native_key=self._native_key,
            position=place,
            advice=advice,
            record=Unread(
                behind=Resume(anchor=borders[1], record_count=self._count),
                reference=self._blocks.reference(*borders),
                raw=raw,
                constants=self._extractor.constants(),
            ),
        )
