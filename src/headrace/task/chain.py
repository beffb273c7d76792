"""The transformation chain of a task: each step is a transformation and the predicate that selects its records."""

from __future__ import annotations

import dataclasses
import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa

from headrace.class_path import class_at
from headrace.connect.batch import BatchOffsets, SourceBatch
from headrace.connect.errors import ConnectError, RecordError, RetriableError
from headrace.connect.header_columns import HeaderColumn, HeaderColumns
from headrace.connect.record import Headers, SourceRecord
from headrace.connect.transforming import (
    ColumnarPredicate,
    ColumnarTransform,
    Predicate,
    Transform,
)
from headrace.task.batching import batches_of
from headrace.task.connector_spec import PluginChoice, StageChoice
from headrace.task.dead_letters import class_name
from headrace.task.error_handling import RetryWithBackoff
from headrace.task.frames import Failed, Filtered, Frame, Place, Records, Refused, Returned
from headrace.task.plain_records import plain_row
from headrace.task.record_origin import located
from headrace.task.slot_work import SlotWork
from headrace.transforms.catalogue import make_predicate, make_transform

_log = logging.getLogger(__name__)

_Plugin = TypeVar("_Plugin", Transform, Predicate)
_Joined = TypeVar("_Joined", bound="pa.Array | int | None")


@dataclass(frozen=True, slots=True)
class Piece:
    """Rows on their way through the chain; *rows* are their indices in the batch that the task returned."""

    batch: SourceBatch
    rows: pa.Int64Array

    def take(self, chosen: np.ndarray) -> Piece:
        """The rows for which *chosen* is true."""
        numbers = pa.array(np.flatnonzero(chosen))
        return Piece(self.batch.take(numbers), self.rows.take(numbers))


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """A transformation with its condition: as in Kafka Connect, it applies when *negate* xor the predicate holds."""

    transform: Transform
    predicate: Predicate | None = None
    negate: bool = False

    def changed(self, record: SourceRecord) -> SourceRecord | None:
        """*record* after this step; ``None`` when it is dropped."""
        if self.predicate is not None and bool(self.predicate.test(record)) == self.negate:
            return record
        return self.transform.apply(record)

    def changed_piece(self, piece: Piece) -> list[Piece] | None:
        """*piece* after this step, without dropped rows; ``None`` when its rows must be processed one by one."""
        if not isinstance(self.transform, ColumnarTransform):
            return None
        applies = self._applies(piece.batch)
        if applies is None:
            return None
        if isinstance(applies, bool):
            return self._applied(piece) if applies else [piece]
        applied = self._applied(piece.take(applies))
        if applied is None:
            return None
        others = piece.take(~applies)
        return [others] if not applied else _merged([*applied, others])

    def _applies(self, batch: SourceBatch) -> bool | np.ndarray | None:
        if self.predicate is None:
            return True
        if not isinstance(self.predicate, ColumnarPredicate):
            return None
        result = self.predicate.test_batch(batch)
        if result is None or isinstance(result, bool):
            return None if result is None else result != self.negate
        if result.type != pa.bool_() or result.null_count or len(result) != len(batch):
            # Not one answer for each row, so `test` has to decide.
            return None
        applies = result.to_numpy(zero_copy_only=False) != self.negate
        if applies.all():
            return True
        return applies if applies.any() else False

    def _applied(self, piece: Piece) -> list[Piece] | None:
        assert isinstance(self.transform, ColumnarTransform), "checked by the caller"
        batches = self.transform.apply_batch(piece.batch)
        return None if batches is None else list(_pieces(batches, piece))


def make_stage(choice: StageChoice) -> Stage:
    """The step that *choice* names, configured.

    Raises :class:`~headrace.connect.errors.ConfigError` for invalid settings, and
    :class:`~headrace.connect.errors.TaskFailedError` for a class that does not exist.
    """
    predicate = choice.predicate
    return Stage(
        transform=_make_plugin(choice.transform, make_transform),
        predicate=None if predicate is None else _make_plugin(predicate, make_predicate),
        negate=choice.negate,
    )


def _make_plugin(
    choice: PluginChoice, make_builtin: Callable[[str, Mapping[str, str]], _Plugin]
) -> _Plugin:
    """A built-in plugin, made by *make_builtin*, or an author's, which the driver names as ``module:Class``."""
    if ":" not in choice.class_name:
        return make_builtin(choice.class_name, choice.config)
    plugin: Any = class_at(choice.class_name, object)()
    plugin.configure(choice.config)
    return plugin


def _pieces(batches: Sequence[SourceBatch], changed: Piece) -> Iterator[Piece]:
    """The *batches* that a transformation made of *changed*, with the source offsets of its rows."""
    start, offsets = 0, changed.batch.offsets
    for batch in batches:
        own = None if offsets is None else offsets.slice(start, len(batch))
        if batch.offsets is not offsets and batch.offsets not in (None, own):
            raise ValueError("A transformation changed the order of rows.")
        kept = dataclasses.replace(
            batch, source_partition=changed.batch.source_partition, offsets=own
        )
        yield Piece(kept, changed.rows.slice(start, len(batch)))
        start += len(batch)
    if batches and start != len(changed.rows):
        raise ValueError(f"A transformation returned {start} rows for {len(changed.rows)}.")


def _merged(pieces: Sequence[Piece]) -> list[Piece] | None:
    """One piece with the rows of all *pieces*, in order; ``None`` when they do not fit into one batch."""
    batches = [piece.batch for piece in pieces]
    first = batches[0]
    if any(_kind(batch) != _kind(first) for batch in batches):
        return None
    rows = pa.concat_arrays([piece.rows for piece in pieces])
    order = pa.array(np.argsort(rows.to_numpy()))
    merged = dataclasses.replace(
        first,
        values=pa.concat_arrays([batch.values for batch in batches]),
        keys=_joined([batch.keys for batch in batches]),
        timestamps=_joined([batch.timestamps for batch in batches]),
        headers=joined_headers(batches),
        offsets=_joined_offsets([batch.offsets for batch in batches]),
    )
    return [Piece(merged.take(order), rows.take(order))]


def _kind(batch: SourceBatch) -> tuple[object, ...]:
    """What must be equal for rows to be in one batch."""
    keys = None if batch.keys is None else batch.keys.type
    stamps = None if isinstance(batch.timestamps, pa.Array) else (batch.timestamps,)
    schemas = (batch.value_schema, batch.key_schema)
    return batch.topic, batch.partition, batch.values.type, keys, stamps, schemas


def _joined(parts: Sequence[_Joined]) -> _Joined:
    first = parts[0]
    return pa.concat_arrays(parts) if isinstance(first, pa.Array) else first


def _joined_offsets(parts: Sequence[BatchOffsets | None]) -> BatchOffsets | None:
    """The offsets of pieces of one batch."""
    present = [part for part in parts if part is not None]
    if not present:
        return None
    columns = {
        name: pa.concat_arrays([part.columns[name] for part in present])
        for name in present[0].columns
    }
    return BatchOffsets(constant=present[0].constant, columns=columns)


def joined_headers(batches: Sequence[SourceBatch]) -> Sequence[Headers] | None:
    """The headers of all rows of *batches*; in columns if all rows have the same headers.

    Raises :class:`~headrace.connect.errors.RecordError` for a header that Python cannot represent.
    """
    if all(batch.headers is None for batch in batches):
        return None
    columns = _joined_columns([batch.headers for batch in batches])
    if columns is not None:
        return HeaderColumns(columns, rows=sum(map(len, batches)))
    return [headers for batch in batches for headers in batch.headers or [()] * len(batch)]


def _joined_columns(parts: Sequence[Sequence[Headers] | None]) -> list[HeaderColumn] | None:
    sides = [each.columns for each in parts if isinstance(each, HeaderColumns)]
    if len(sides) < len(parts) or len(set(map(len, sides))) > 1:
        return None
    joined = [_joined_column(same) for same in zip(*sides, strict=True)]
    known = [each for each in joined if each is not None]
    return known if len(known) == len(joined) else None


def _joined_column(columns: Sequence[HeaderColumn]) -> HeaderColumn | None:
    """The same header of several batches as one column; ``None`` if it differs between them."""
    first = columns[0]
    if len({repr(_header_kind(each)) for each in columns}) > 1:
        return None
    arrays = [each.values for each in columns if each.values is not None]
    if not arrays:
        return first
    return HeaderColumn(key=first.key, values=pa.concat_arrays(arrays), schema=first.schema)


def _header_kind(column: HeaderColumn) -> tuple[object, ...]:
    held = None if column.values is None else column.values.type
    return column.key, column.schema, held, column.value


class _NotTransformed(Exception):  # noqa: N818 (never leaves this module)
    """One record cannot go through the chain."""

    def __init__(self, error: RecordError, by: object) -> None:
        super().__init__(error)
        self.error = error
        self.by = by


class Chain:
    """Transforms and filters records (KIP-66): by batches if every step supports them, otherwise one by one."""

    def __init__(
        self, stages: Sequence[Stage], *, retrying: RetryWithBackoff, tolerates: bool
    ) -> None:
        self._stages = stages
        self._retrying = retrying
        self._tolerates = tolerates

    def frames(self, frames: Iterable[Frame]) -> Iterator[Frame]:
        """*frames* with their records transformed; other frames are passed on unchanged."""
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
            yield _transformed(frame, piece)
        yield from _filtered(frame, left)

    def _by_batches(self, batch: SourceBatch) -> list[Piece] | None:
        """*batch* after all steps; ``None`` when a step cannot process batches, or refuses one of the records."""
        pieces = [Piece(batch, pa.array(np.arange(len(batch))))]
        for stage in self._stages:
            changed = list[Piece]()
            for piece in pieces:
                after = _changed_piece(stage, piece)
                if after is None:
                    return None
                changed += after
            pieces = changed
        return pieces

    def _one_by_one(self, frame: Records) -> Iterator[Frame]:
        transformed = list[SourceRecord]()
        rows = list[int]()
        left = np.zeros(len(frame.batch), dtype=bool)
        for row in range(len(frame.batch)):
            try:
                first = rows[0] if rows else row
                record = self._transform_row(frame, row, partial(_place, frame, first))
            except _NotTransformed as refused:
                yield from self._batched(frame, transformed, rows)
                transformed, rows = [], []
                yield self._refused(frame.slice(row, 1), refused)
                continue
            if record is None:
                left[row] = True
            else:
                transformed.append(record)
                rows.append(row)
        yield from self._batched(frame, transformed, rows)
        yield from _filtered(frame, left)

    def _batched(
        self, frame: Records, records: Sequence[SourceRecord], rows: Sequence[int]
    ) -> Iterator[Frame]:
        """The batches of *records*, which were the *rows* of *frame*; a record that fits no batch is refused."""
        done = 0
        while done < len(records):
            try:
                for batch, group in batches_of(records[done:]):
                    taken = pa.array(rows[done : done + len(group)], pa.int64())
                    yield _transformed(frame, _with_own_offsets(frame, Piece(batch, taken)))
                    done += len(group)
            except RecordError as error:
                refused = _NotTransformed(error, self._stages[-1].transform)
                yield self._refused(frame.slice(rows[done], 1), refused)
                done += 1

    def _transform_row(
        self, frame: Records, row: int, waits_from: Callable[[], Place | None]
    ) -> SourceRecord | None:
        changed: SourceRecord | None = self._read(frame, row)
        for stage in self._stages:
            if changed is None:
                return None
            changed = self._apply(stage, changed, waits_from)
        return changed

    def _read(self, frame: Records, row: int) -> SourceRecord:
        original = None if frame.originals is None else frame.originals[row]
        try:
            return plain_row(frame.batch, row, original)
        except RecordError as error:
            raise _NotTransformed(error, self._stages[0].transform) from error

    def _apply(
        self, stage: Stage, record: SourceRecord, waits_from: Callable[[], Place | None]
    ) -> SourceRecord | None:
        try:
            return _checked(stage, self._retrying.call(lambda: stage.changed(record), waits_from))
        except RecordError as error:
            raise _NotTransformed(error, stage.transform) from error
        except ConnectError:
            raise
        except Exception as error:
            # As in Kafka Connect, any exception of a transformation is attributed to its record.
            failure = RecordError(
                f"{type(stage.transform).__name__} raised {type(error).__name__}: {error}"
            )
            raise _NotTransformed(failure, stage.transform) from error

    def _refused(self, frame: Records, refused: _NotTransformed) -> Frame:
        refused.error.row = 0
        result = Refused(frame, refused.error, class_name(refused.by))
        if self._tolerates:
            return result
        return Failed(located(result.error, frame.batch), frame.begins_at, result)


def _checked(stage: Stage, changed: object) -> SourceRecord | None:
    """*changed*, which a transformation returned; raises ``RecordError`` if it is no record and not ``None``."""
    if changed is None or isinstance(changed, SourceRecord):
        return changed
    name = type(stage.transform).__name__
    raise RecordError(
        f"{name} returned {type(changed).__name__!r}: return a SourceRecord, or None to drop it."
    )


def _place(frame: Records, row: int) -> Place | None:
    return frame.slice(row, 1).begins_at


def chain_of(work: SlotWork, retrying: RetryWithBackoff) -> Chain:
    """The chain of the slot that executes *work*; raises as ``make_stage`` does."""
    return Chain(
        [make_stage(each) for each in work.spec.transforms],
        retrying=retrying,
        tolerates=work.spec.errors.tolerate,
    )


def _changed_piece(stage: Stage, piece: Piece) -> list[Piece] | None:
    """*piece* after *stage*; ``None`` when its rows must be processed one by one."""
    try:
        return stage.changed_piece(piece)
    except (RecordError, RetriableError):
        # Processing the rows one by one finds the record, and retries it.
        return None
    except ConnectError:
        raise
    except Exception:  # noqa: BLE001 (authors write transformations)
        # `apply` decides about each record; `apply_batch` is only an optimisation of it.
        _log.debug(
            "A transformation failed on a batch; its rows are processed one by one", exc_info=True
        )
        return None


def _transformed(frame: Records, piece: Piece) -> Records:
    """*piece* of *frame*, after the chain, with the original rows that the task's hooks are called with."""
    before = frame.returned
    rows = piece.rows if before is None else before.rows.take(piece.rows)
    originals = frame.originals
    return Records(
        piece.batch,
        None if originals is None else [originals[row] for row in piece.rows.to_pylist()],
        Returned(frame.batch if before is None else before.batch, rows),
    )


def _with_own_offsets(frame: Records, piece: Piece) -> Piece:
    """*piece* with the source offsets of *frame*, which transformations must not change."""
    offsets = frame.batch.offsets
    batch = dataclasses.replace(
        piece.batch,
        source_partition=frame.batch.source_partition,
        offsets=None if offsets is None else offsets.take(piece.rows),
    )
    return Piece(batch, piece.rows)


def _filtered(frame: Records, left: np.ndarray) -> Iterator[Frame]:
    """The dropped rows of *frame*, for which *left* is true, and the offset of its last row."""
    if left.any():
        dropped = frame.take(pa.array(np.flatnonzero(left)))
        yield Filtered(dropped, frame.batch.offset_at(-1))
