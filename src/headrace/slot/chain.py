"""The transformation chain of a slot: between the half that reads and the half that writes."""

from __future__ import annotations

import dataclasses
import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial

import numpy as np
import pyarrow as pa

from headrace.connect.batch import SourceBatch
from headrace.connect.errors import ConnectError, RecordError, RetriableError
from headrace.connect.record import SourceRecord
from headrace.slot.batching import batches_of
from headrace.slot.dead_letters import class_name
from headrace.slot.frames import Failed, Filtered, Frame, Place, Records, Refused, Returned
from headrace.slot.places import located
from headrace.slot.plain_rows import plain_row
from headrace.slot.retrying import Retrying
from headrace.slot.stages import Piece, Stage, made_stage
from headrace.slot.work import SlotWork

_log = logging.getLogger(__name__)


class _NotTransformed(Exception):  # noqa: N818 (never leaves this module)
    """One record cannot go through the chain."""

    def __init__(self, error: RecordError, by: object) -> None:
        super().__init__(error)
        self.error = error
        self.by = by


class Chain:
    """Changes and drops records, by batches where every step can, otherwise one by one (KIP-66)."""

    def __init__(self, stages: Sequence[Stage], *, retrying: Retrying, tolerates: bool) -> None:
        self._stages = stages
        self._retrying = retrying
        self._tolerates = tolerates

    def frames(self, frames: Iterable[Frame]) -> Iterator[Frame]:
        """*frames* with their records transformed; what is not records passes."""
        for frame in frames:
            if isinstance(frame, Records) and self._stages and len(frame.batch):
                yield from self._changed(frame)
            else:
                yield frame

    def _changed(self, frame: Records) -> Iterator[Frame]:
        pieces = self._by_batches(frame.batch)
        if pieces is None:
            yield from self._one_by_one(frame)
            return
        left = np.ones(len(frame.batch), dtype=bool)
        for piece in pieces:
            left[piece.rows.to_numpy()] = False
            yield _behind(frame, piece)
        yield from _filtered(frame, left)

    def _by_batches(self, batch: SourceBatch) -> list[Piece] | None:
        """*batch* behind all steps; ``None`` when one of them has no way for it, or refuses one of its records."""
        pieces = [Piece(batch, pa.array(np.arange(len(batch))))]
        for stage in self._stages:
            changed = list[Piece]()
            for piece in pieces:
                behind = _changed_piece(stage, piece)
                if behind is None:
                    return None
                changed += behind
            pieces = changed
        return pieces

    def _one_by_one(self, frame: Records) -> Iterator[Frame]:
        behind = list[SourceRecord]()
        rows = list[int]()
        left = np.zeros(len(frame.batch), dtype=bool)
        for row in range(len(frame.batch)):
            try:
                first = rows[0] if rows else row
                record = self._through(frame, row, partial(_place, frame, first))
            except _NotTransformed as refused:
                yield from self._batched(frame, behind, rows)
                behind, rows = [], []
                yield self._refused(frame.slice(row, 1), refused)
                continue
            if record is None:
                left[row] = True
            else:
                behind.append(record)
                rows.append(row)
        yield from self._batched(frame, behind, rows)
        yield from _filtered(frame, left)

    def _batched(
        self, frame: Records, records: Sequence[SourceRecord], rows: Sequence[int]
    ) -> Iterator[Frame]:
        """The batches of *records*, which were the *rows* of *frame*; what fits no batch is refused."""
        done = 0
        while done < len(records):
            try:
                for batch, group in batches_of(records[done:]):
                    taken = pa.array(rows[done : done + len(group)], pa.int64())
                    yield _behind(frame, _with_own_offsets(frame, Piece(batch, taken)))
                    done += len(group)
            except RecordError as error:
                refused = _NotTransformed(error, self._stages[-1].transform)
                yield self._refused(frame.slice(rows[done], 1), refused)
                done += 1

    def _through(
        self, frame: Records, row: int, waits_from: Callable[[], Place | None]
    ) -> SourceRecord | None:
        changed: SourceRecord | None = self._read(frame, row)
        for stage in self._stages:
            if changed is None:
                return None
            changed = self._behind(stage, changed, waits_from)
        return changed

    def _read(self, frame: Records, row: int) -> SourceRecord:
        original = None if frame.originals is None else frame.originals[row]
        try:
            return plain_row(frame.batch, row, original)
        except RecordError as error:
            raise _NotTransformed(error, self._stages[0].transform) from error

    def _behind(
        self, stage: Stage, record: SourceRecord, waits_from: Callable[[], Place | None]
    ) -> SourceRecord | None:
        try:
            return _checked(stage, self._retrying.call(lambda: stage.changed(record), waits_from))
        except RecordError as error:
            raise _NotTransformed(error, stage.transform) from error
        except ConnectError:
            raise
        except Exception as error:
            # Whatever a transformation raises is about its record, as in Kafka Connect.
            told = RecordError(
                f"{type(stage.transform).__name__} raised {type(error).__name__}: {error}"
            )
            raise _NotTransformed(told, stage.transform) from error

    def _refused(self, frame: Records, refused: _NotTransformed) -> Frame:
        refused.error.row = 0
        found = Refused(frame, refused.error, class_name(refused.by))
        if self._tolerates:
            return found
        return Failed(located(found.error, frame.batch), frame.begins_at, found)


def _checked(stage: Stage, changed: object) -> SourceRecord | None:
    """What an author's transformation has made of a record."""
    if changed is None or isinstance(changed, SourceRecord):
        return changed
    name = type(stage.transform).__name__
    raise RecordError(
        f"{name} returned {type(changed).__name__!r}: return a SourceRecord, or None to drop it."
    )


def _place(frame: Records, row: int) -> Place | None:
    return frame.slice(row, 1).begins_at


def chain_of(work: SlotWork, retrying: Retrying) -> Chain:
    """The chain of a slot that does *work*; raises as ``made_stage`` does."""
    return Chain(
        [made_stage(each) for each in work.transforms],
        retrying=retrying,
        tolerates=work.errors.tolerate,
    )


def _changed_piece(stage: Stage, piece: Piece) -> list[Piece] | None:
    """*piece* behind *stage*; ``None`` when its rows have to go one by one."""
    try:
        return stage.changed_piece(piece)
    except (RecordError, RetriableError):
        # One by one it is found which record that is, and tried again.
        return None
    except ConnectError:
        raise
    except Exception:  # noqa: BLE001 (authors write transformations)
        # What `apply` says of its records counts; a batch is only its shorter way.
        _log.debug("Rows go one by one behind this error of a batch", exc_info=True)
        return None


def _behind(frame: Records, piece: Piece) -> Records:
    """*piece* of *frame* as it is sent, with what the task knows of its rows."""
    before = frame.returned
    rows = piece.rows if before is None else before.rows.take(piece.rows)
    originals = frame.originals
    return Records(
        piece.batch,
        None if originals is None else [originals[row] for row in piece.rows.to_pylist()],
        Returned(frame.batch if before is None else before.batch, rows),
    )


def _with_own_offsets(frame: Records, piece: Piece) -> Piece:
    """*piece* with the source's offsets, whatever a transformation made of them."""
    offsets = frame.batch.offsets
    batch = dataclasses.replace(
        piece.batch,
        source_partition=frame.batch.source_partition,
        offsets=None if offsets is None else offsets.take(piece.rows),
    )
    return Piece(batch, piece.rows)


def _filtered(frame: Records, left: np.ndarray) -> Iterator[Frame]:
    """What became of the rows that are *left*, and the offset that is reached with the last row of *frame*."""
    if left.any():
        dropped = frame.take(pa.array(np.flatnonzero(left)))
        yield Filtered(dropped, frame.batch.offset_at(-1))
