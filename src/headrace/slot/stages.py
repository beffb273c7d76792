"""One step of a transformation chain: a transformation, and the predicate that says to which records it applies."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa

from headrace.class_path import class_at
from headrace.connect.batch import BatchOffsets, SourceBatch
from headrace.connect.record import SourceRecord
from headrace.connect.transforming import (
    ColumnarPredicate,
    ColumnarTransform,
    Predicate,
    Transform,
)
from headrace.slot.joined_headers import joined_headers
from headrace.slot.work import PluginChoice, StageChoice
from headrace.transforms.catalogue import make_predicate, make_transform

_Made = TypeVar("_Made", Transform, Predicate)
_Joined = TypeVar("_Joined", bound="pa.Array | int | None")


@dataclass(frozen=True, slots=True)
class Piece:
    """Rows on their way through the chain; *rows* are their numbers in the batch that the task returned."""

    batch: SourceBatch
    rows: pa.Int64Array

    def take(self, chosen: np.ndarray) -> Piece:
        """The rows for which *chosen* is true."""
        numbers = pa.array(np.flatnonzero(chosen))
        return Piece(self.batch.take(numbers), self.rows.take(numbers))


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """A transformation with its condition; as Kafka Connect's chain, it applies when *negate* xor the predicate."""

    transform: Transform
    predicate: Predicate | None = None
    negate: bool = False

    def changed(self, record: SourceRecord) -> SourceRecord | None:
        """*record* behind this step; ``None`` when it is dropped."""
        if self.predicate is not None and bool(self.predicate.test(record)) == self.negate:
            return record
        return self.transform.apply(record)

    def changed_piece(self, piece: Piece) -> list[Piece] | None:
        """*piece* behind this step, without what is dropped; ``None`` when its rows have to go one by one."""
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
        told = self.predicate.test_batch(batch)
        if told is None or isinstance(told, bool):
            return None if told is None else told != self.negate
        if told.type != pa.bool_() or told.null_count or len(told) != len(batch):
            # As `test` sees them, because this does not say it of each row.
            return None
        applies = told.to_numpy(zero_copy_only=False) != self.negate
        if applies.all():
            return True
        return applies if applies.any() else False

    def _applied(self, piece: Piece) -> list[Piece] | None:
        assert isinstance(self.transform, ColumnarTransform), "asked before"
        batches = self.transform.apply_batch(piece.batch)
        return None if batches is None else list(_pieces(batches, piece))


def made_stage(choice: StageChoice) -> Stage:
    """The step that *choice* names, configured.

    Raises :class:`~headrace.connect.errors.ConfigError` for settings that are wrong, and
    :class:`~headrace.connect.errors.TaskFailedError` for a class that is not there.
    """
    predicate = choice.predicate
    return Stage(
        transform=_made(choice.transform, make_transform),
        predicate=None if predicate is None else _made(predicate, make_predicate),
        negate=choice.negate,
    )


def _made(choice: PluginChoice, make_own: Callable[[str, Mapping[str, str]], _Made]) -> _Made:
    """One of our own, which *make_own* knows, or an author's, which the driver has named by where it lies."""
    if ":" not in choice.class_name:
        return make_own(choice.class_name, choice.config)
    made: Any = class_at(choice.class_name, object)()
    made.configure(choice.config)
    return made


def _pieces(batches: Sequence[SourceBatch], changed: Piece) -> Iterator[Piece]:
    """What *changed* has become: *batches*, with the source offsets that it had."""
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
        raise ValueError(f"A transformation made {start} rows of {len(changed.rows)}.")


def _merged(pieces: Sequence[Piece]) -> list[Piece] | None:
    """One piece with the rows of all, in their order; ``None`` when they do not fit into one batch."""
    batches = [piece.batch for piece in pieces]
    first = batches[0]
    if any(_kind(batch) != _kind(first) for batch in batches):
        return None
    rows = pa.concat_arrays([piece.rows for piece in pieces])
    order = pa.array(np.argsort(rows.to_numpy()))
    together = dataclasses.replace(
        first,
        values=pa.concat_arrays([batch.values for batch in batches]),
        keys=_joined([batch.keys for batch in batches]),
        timestamps=_joined([batch.timestamps for batch in batches]),
        headers=joined_headers(batches),
        offsets=_joined_offsets([batch.offsets for batch in batches]),
    )
    return [Piece(together.take(order), rows.take(order))]


def _kind(batch: SourceBatch) -> tuple[object, ...]:
    """What the rows of one batch have in common."""
    keys = None if batch.keys is None else batch.keys.type
    stamps = None if isinstance(batch.timestamps, pa.Array) else (batch.timestamps,)
    schemas = (batch.value_schema, batch.key_schema)
    return batch.topic, batch.partition, batch.values.type, keys, stamps, schemas


def _joined(parts: Sequence[_Joined]) -> _Joined:
    first = parts[0]
    return pa.concat_arrays(parts) if isinstance(first, pa.Array) else first


def _joined_offsets(parts: Sequence[BatchOffsets | None]) -> BatchOffsets | None:
    """The offsets of pieces of one batch."""
    there = [part for part in parts if part is not None]
    if not there:
        return None
    columns = {
        name: pa.concat_arrays([part.columns[name] for part in there]) for name in there[0].columns
    }
    return BatchOffsets(constant=there[0].constant, columns=columns)
