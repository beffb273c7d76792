"""One object's records, in batches, each with the place behind it."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from headrace.connect.errors import ConnectError, RecordError, TaskFailedError
from headrace.connect.partition import OffsetValue
from headrace.sources.extractors.blocks import BlockReader
from headrace.sources.extractors.extractor import BadRow, Extractor
from headrace.sources.extractors.rows import Places, RowBlock


@dataclass(frozen=True, slots=True, kw_only=True)
class Resume:
    """Where reading goes on: *skip* records behind *anchor*, after *record_count* records in all."""

    anchor: int = 0
    skip: int = 0
    record_count: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Chunk:
    """Some records in order: their values, the byte behind each, and how many there are up to each.

    *last* says that nothing but blank rows may follow.
    """

    values: pa.Array
    anchors: Places
    counts: Places
    constants: Mapping[str, OffsetValue]
    last: bool

    def __len__(self) -> int:
        return len(self.values)


class RecordReader:
    """Reads *blocks*, which begin at *resume*'s anchor, through *extractor*.

    A bad row raises once, after everything before it was returned; the next call goes on behind it, and
    it counts as a record. *native_key* is what errors call the object.
    """

    def __init__(
        self,
        blocks: BlockReader,
        extractor: Extractor,
        *,
        native_key: str,
        resume: Resume,
        max_rows: int,
        max_row_bytes: int,
    ) -> None:
        self._blocks = blocks
        self._extractor = extractor
        self._native_key = native_key
        self._max_rows = max_rows
        self._max_row_bytes = max_row_bytes
        self._skip = resume.skip
        self._count = resume.record_count - resume.skip
        self._rows: RowBlock | None = None
        self._error: ConnectError | None = None
        self._fatal: TaskFailedError | None = None

    @property
    def extractor(self) -> Extractor:
        """What reads the rows."""
        return self._extractor

    @property
    def position(self) -> int:
        """After the end: the byte behind the last row, blank rows included."""
        return self._blocks.position

    @property
    def record_count(self) -> int:
        """After the end: how many records there were, bad ones included."""
        return self._count

    @property
    def cut_short(self) -> bool:
        """After the end: whether the object ended before the place where it should."""
        return self._blocks.cut_short

    def next_chunk(self) -> Chunk | None:
        """The next records; ``None`` when there are no more.

        Raises :class:`~headrace.connect.errors.RecordError` with the object and the position for a
        record that cannot be read, and :class:`~headrace.connect.errors.TaskFailedError` when nothing
        behind it can be read either.
        """
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
        """Close the object."""
        self._blocks.close()

    def _raise_pending(self) -> None:
        error, self._error = self._error, self._fatal
        if error is not None:
            raise error

    def _advance(self) -> None:
        """Read the next block; an error waits until all before it was returned."""
        try:
            self._rows = self._blocks.next_block()
        except RecordError as error:
            self._count += error.position is None
            place = f"{self._blocks.place(self.position)} (record {self._count})"
            self._error = error.located(self._native_key, place)
            if self._blocks.broken:
                self._fatal = TaskFailedError(str(self._error))
        except OSError as error:
            self._error = self._fatal = TaskFailedError(
                f"{self._native_key}, byte {self.position}: It cannot be read: {error.strerror}."
            )

    def _chunk(self, block: RowBlock) -> Chunk | None:
        rows, refused = self._before_long(block.slice(0, self._max_rows))
        found = self._extractor.extract(rows)
        picked = rows if found.rows is None else rows.pick(found.rows)
        first = self._count + 1
        self._count += len(found.values)
        self._go_behind(block, rows=rows, refused=found.bad or refused)
        if self._rows is None and self._error is None:
            self._advance()
        return self._resumed(
            Chunk(
                values=found.values,
                anchors=picked.nexts[: len(found.values)] + picked.base,
                counts=np.arange(first, first + len(found.values), dtype=np.int64),
                constants=self._extractor.constants(),
                last=self._rows is None and self._error is None,
            )
        )

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
        if refused is not None:
            done = refused.row + 1
            self._count += 1
            self._refuse(refused, block.position(refused.row))
        self._rows = block.slice(done) if done < len(block) else None

    def _refuse(self, refused: BadRow, position: int) -> None:
        self._error = RecordError(
            refused.reason,
            native_key=self._native_key,
            position=f"{self._blocks.place(position)} (record {self._count})",
            advice=refused.advice,
        )
        if refused.fatal:
            self._fatal = TaskFailedError(str(self._error))

    def _resumed(self, chunk: Chunk) -> Chunk | None:
        """What is left of *chunk* without the records that were read before."""
        dropped = min(self._skip, len(chunk))
        self._skip -= dropped
        if dropped == len(chunk):
            return None
        if not dropped:
            return chunk
        return dataclasses.replace(
            chunk,
            values=chunk.values.slice(dropped),
            anchors=chunk.anchors[dropped:],
            counts=chunk.counts[dropped:],
        )
