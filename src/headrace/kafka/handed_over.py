"""Batches that were handed over to a producer of our own: whose records they hold, for errors, and for what was copied where."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

import numpy as np

from headrace.connect.encoded import CopiedRun, EncodedBatches
from headrace.connect.errors import ConnectError
from headrace.connect.partition import SourcePartition
from headrace.kafka.batches.errors import UnforwardableError
from headrace.kafka.batches.forwarding import SourceRun
from headrace.kafka.batches.varints import Int64Array
from headrace.kafka.errors import LateRefusalError
from headrace.kafka.gathered_rows import RowNumbers
from headrace.kafka.topic_partition import TopicPartition
from headrace.kafka.wire.producer_errors import BatchRefusedError

_SIZES: Final = ("MESSAGE_TOO_LARGE", "RECORD_LIST_TOO_LARGE")
_LEAST_BATCHES: Final = 16
_OF_ONE_RECORD: Final = (*_SIZES, "INVALID_RECORD", "INVALID_TIMESTAMP")


class RowOrigin(NamedTuple):
    """A batch of *rows* of *topic*: how many bytes keys and values have, -1 for null, also those of other rows; ``None``: no key.

    *numbers* tell with which call each of all rows came.
    """

    topic: str
    key_sizes: Int64Array | None
    value_sizes: Int64Array
    rows: Int64Array
    numbers: RowNumbers

    def refusal(self, error: BatchRefusedError) -> ConnectError:
        """The error for the record that is the reason, as far as that can be told; otherwise *error*."""
        if error.error not in _OF_ONE_RECORD:
            return error
        values = self.value_sizes[self.rows]
        keys = np.full_like(values, -1) if self.key_sizes is None else self.key_sizes[self.rows]
        sizes = np.maximum(keys, 0) + np.maximum(values, 0)
        row = _row(error, int(np.argmax(sizes)) if error.error in _SIZES else 0)
        is_certain = bool(error.rows) or len(self.rows) == 1
        said = f": {error.detail.rstrip('.')}" if error.detail else ""
        return LateRefusalError(
            f"Kafka refused a record ({sizes[row]} B with its key) for topic {self.topic!r}: {error.error}{said}.",
            advice=error.advice,
            topic=self.topic,
            key_bytes=_known(keys, row),
            value_bytes=_known(values, row),
            place=self.numbers.place(int(self.rows[row])) if is_certain else None,
        )


class SourceOrigin(NamedTuple):
    """A batch of records that are copied from the partition *source*, which is *place* in errors, to *target*.

    *batches* are those of which they are, without their bytes; rows have none, and a refusal of them cannot be tolerated.
    """

    source: SourcePartition
    place: TopicPartition
    target: TopicPartition
    runs: Sequence[SourceRun]
    batches: EncodedBatches | None = None

    def refusal(self, error: BatchRefusedError) -> UnforwardableError:
        """The error with the place of the record that is the reason, or of all that were in the batch."""
        first, last = self.runs[0].first, self.runs[-1].first + self.runs[-1].records - 1
        if error.rows:
            first = last = self._offset(error.rows[0])
        said = f": {error.detail.rstrip('.')}" if error.detail else ""
        reason = f"Kafka refused a batch for {self.target}: {error.error}{said}"
        return UnforwardableError(self.place, first, reason, advice=error.advice, last=last)

    def _offset(self, row: int) -> int:
        for run in self.runs:
            if row < run.records:
                return run.first + row
            row -= run.records
        return self.runs[-1].first + self.runs[-1].records - 1


@dataclass(slots=True)
class HandedOver:
    """What was handed over by the numbers that the producer gave. One thread owns it.

    Rows are forgotten some time after they are acknowledged, what was copied when a transaction ends.
    """

    _rows: dict[int, RowOrigin] = field(default_factory=dict[int, RowOrigin])
    _most_rows: int = _LEAST_BATCHES
    _copied: dict[int, SourceOrigin] = field(default_factory=dict[int, SourceOrigin])

    def add_rows(self, number: int, origin: RowOrigin) -> None:
        self._rows[number] = origin

    def add_copied(self, number: int, origin: SourceOrigin) -> None:
        self._copied[number] = origin

    def forget_acknowledged(self, is_acknowledged: Callable[[int], bool]) -> None:
        """Forget the rows of batches that are acknowledged, once there are twice as many batches as were not the last time."""
        if len(self._rows) < self._most_rows:
            return
        for number in filter(is_acknowledged, list(self._rows)):
            del self._rows[number]
        self._most_rows = max(_LEAST_BATCHES, 2 * len(self._rows))

    def forget_rows(self) -> None:
        """All of them are acknowledged."""
        self._rows.clear()

    def forget(self) -> None:
        """A transaction has ended, or begins."""
        self._rows.clear()
        self._copied.clear()

    def refusal(self, error: BatchRefusedError) -> ConnectError:
        """The error for a batch that the broker has refused."""
        origin = self._rows.get(error.number) or self._copied.get(error.number)
        return error if origin is None else origin.refusal(error)

    def copied_batch(self, number: int) -> SourceOrigin | None:
        """The batch of that *number*, if it is copied; not one of rows."""
        return self._copied.get(number)

    def shrink(self, number: int, runs: Sequence[SourceRun]) -> None:
        """Of the copied batch of that *number* only the records of *runs* are left."""
        if runs:
            self._copied[number] = self._copied[number]._replace(runs=runs)
        else:
            del self._copied[number]

    def copied(self, base_offset: Callable[[int], int | None]) -> list[CopiedRun]:
        """What was copied since the last ``forget``, in unbroken runs, as far as the broker has said where it landed."""
        found: list[CopiedRun] = []
        last: dict[TopicPartition, int] = {}
        for number, origin in self._copied.items():
            at = base_offset(number)
            for run in origin.runs if at is not None else ():
                assert at is not None
                made = CopiedRun(origin.source, origin.target, run.first, at, run.records)
                at += run.records
                index = last.get(origin.target)
                joined = None if index is None else _joined(found[index], made)
                if index is None or joined is None:
                    last[origin.target] = len(found)
                    found.append(made)
                else:
                    found[index] = joined
        return found


def _joined(run: CopiedRun, following: CopiedRun) -> CopiedRun | None:
    """Both as one, if *following* goes on where *run* ends on both sides."""
    ends = (run.source, run.first + run.records, run.target_first + run.records)
    if ends != (following.source, following.first, following.target_first):
        return None
    return run._replace(records=run.records + following.records)


def _row(error: BatchRefusedError, otherwise: int) -> int:
    return error.rows[0] if error.rows else otherwise


def _known(sizes: Int64Array, row: int) -> int | None:
    return None if sizes[row] < 0 else int(sizes[row])
