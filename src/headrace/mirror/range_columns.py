"""Many offset ranges at once, by columns: a topic of them may have millions, and every start of a reader reads it. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headrace.kafka.topic_partition import TopicPartition
from headrace.mirror.formats import OffsetRange

# As OffsetRange has it.
_VALUE: Final = np.dtype(
    [("version", ">i2"), ("upstream", ">i8"), ("downstream", ">i8"), ("records", ">i8")]
)


class RangeColumns(NamedTuple):
    """Ranges of one partition of the source, in the order in which they were written: arrays of int64."""

    place: TopicPartition
    upstream: np.ndarray[Any, np.dtype[np.int64]]
    downstream: np.ndarray[Any, np.dtype[np.int64]]
    records: np.ndarray[Any, np.dtype[np.int64]]

    @classmethod
    def of(cls, found: OffsetRange) -> RangeColumns:
        """One range."""
        numbers = (np.array([each], np.int64) for each in found[2:])
        return cls(TopicPartition(found.topic, found.partition), *numbers)

    def ranges(self) -> Iterator[OffsetRange]:
        """One after the other."""
        numbers = (each.tolist() for each in self[1:])
        return (OffsetRange(*self.place, *each) for each in zip(*numbers, strict=True))

    @property
    def grows(self) -> bool:
        """Whether none contradicts one before it: offsets grow on both sides."""
        return all(
            bool(np.all(side[1:] >= side[:-1] + self.records[:-1]))
            for side in (self.upstream, self.downstream)
        )


class DecodedRanges(NamedTuple):
    """What records say, by partition, and what is wrong with others."""

    found: Sequence[RangeColumns]
    refused: Sequence[ValueError]


def decoded_ranges(columns: pa.RecordBatch) -> DecodedRanges:
    """The ranges in records with the columns ``key`` and ``value``; those without a value say nothing."""
    found = _of_usual_form(columns)
    return _one_by_one(columns) if found is None else DecodedRanges(found, ())


def _of_usual_form(columns: pa.RecordBatch) -> Sequence[RangeColumns] | None:
    """The ranges, if each record is exactly one; ``None`` otherwise."""
    keys, values = columns["key"], columns["value"]
    lengths = pc.min_max(pc.binary_length(values)).as_py()
    if keys.null_count or values.null_count or {*lengths.values()} != {_VALUE.itemsize}:
        return None
    rows = np.frombuffer(b"".join(values.to_pylist()), _VALUE)
    is_usual = (
        (rows["version"] == 0)
        & (rows["upstream"] >= 0)
        & (rows["downstream"] >= 0)
        & (rows["records"] > 0)
    )
    encoded = keys.dictionary_encode()
    try:
        places = [OffsetRange.place_of(each) for each in encoded.dictionary.to_pylist()]
    except ValueError:
        return None
    # A key with more after its last field is another one of the same partition.
    if not is_usual.all() or len({*places}) < len(places):
        return None
    indices = encoded.indices.to_numpy(zero_copy_only=False)
    order = np.argsort(indices, kind="stable")
    ends = np.cumsum(np.bincount(indices, minlength=len(places)))
    return [
        RangeColumns(
            place,
            *(
                rows[name][chosen].astype(np.int64)
                for name in ("upstream", "downstream", "records")
            ),
        )
        for place, chosen in zip(places, np.split(order, ends[:-1]), strict=True)
    ]


def _one_by_one(columns: pa.RecordBatch) -> DecodedRanges:
    found, refused = list[RangeColumns](), list[ValueError]()
    pairs = zip(columns["key"].to_pylist(), columns["value"].to_pylist(), strict=True)
    for key, value in pairs:
        if value is None:
            continue
        try:
            found.append(RangeColumns.of(OffsetRange.decoded(key or b"", value)))
        except ValueError as error:
            refused.append(error)
    return DecodedRanges(found, refused)
