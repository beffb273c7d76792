"""What a chain of transformations costs: lines of a file, the chain, and the JSON converter with its schema.

Needs no broker: what is measured is a slot's work between reading and sending, in CPU seconds of this process.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

import pyarrow as pa

from benchmarks.avro_encoding import LIMITS
from benchmarks.contender import BenchmarkError
from benchmarks.figure import Figure
from benchmarks.samples import json_line
from headrace.connect.batch import BatchOffsets, SourceBatch
from headrace.connect.partition import SourcePartition
from headrace.connect.record import SourceRecord
from headrace.connect.transforming import Transform
from headrace.converters import make_converter
from headrace.formats.by_name import LINES
from headrace.task.chain import Chain, Stage
from headrace.task.connector_spec import ErrorPolicy
from headrace.task.error_handling import RetryWithBackoff
from headrace.task.frames import Frame, Records
from headrace.task.slot_report import Progress
from headrace.testing.format_suite import reader_of
from headrace.transforms.catalogue import TRANSFORM_CLASSES, make_transform

KEY: Final = "chain"
"""Names it on the command line."""

_PACKAGE = "org.apache.kafka.connect.transforms"
_STEPS: Mapping[str, Mapping[str, str]] = {
    f"{_PACKAGE}.HoistField$Value": {"field": "line"},
    f"{_PACKAGE}.InsertField$Value": {"static.field": "origin", "static.value": "benchmark"},
    f"{_PACKAGE}.RegexRouter": {"regex": "(.*)", "replacement": "routed-$1"},
}
_ROUNDS = 5


class OneByOne:
    """A transformation as most authors write theirs: it knows single records only."""

    def __init__(self, transform: Transform) -> None:
        self._transform = transform

    def configure(self, config: Mapping[str, str]) -> None:
        """It is configured already."""

    def apply(self, record: SourceRecord) -> SourceRecord | None:
        """As the transformation does."""
        return self._transform.apply(record)


def chain_figures(count: int) -> Sequence[Figure]:
    """Records per CPU second over *count* lines: without a chain, with it, and with it record by record."""
    content = "".join(map(json_line, range(count))).encode()
    steps = [
        make_transform(name, config) for name, config in _STEPS.items() if name in TRANSFORM_CLASSES
    ]
    batches, records = _stages(steps), _stages([OneByOne(each) for each in steps])
    if _encoded(content, batches) != _encoded(content, records):
        raise BenchmarkError("What comes out of the chain differs between batches and records.")
    names = " → ".join(each.rpartition(".")[2] for each in _STEPS if each in TRANSFORM_CLASSES)
    return [
        Figure(title=title, value=count / _seconds(content, stages), unit="records per CPU second")
        for title, stages in (
            ("lines to JSON with schema, without a chain", []),
            (f"the same after {names}, in batches", batches),
            (f"the same after {names}, record by record", records),
        )
    ]


def _stages(transforms: Sequence[Transform]) -> Sequence[Stage]:
    return [Stage(transform=each) for each in transforms]


def _seconds(content: bytes, stages: Sequence[Stage]) -> float:
    """CPU seconds of one round, the median of several."""
    took = list[float]()
    for _ in range(_ROUNDS):
        began = time.process_time()
        for _batch, _values in _rows(content, stages):
            pass
        took.append(time.process_time() - began)
    return statistics.median(took)


def _encoded(content: bytes, stages: Sequence[Stage]) -> list[tuple[str, bytes]]:
    """The topic and the bytes of each record."""
    return [
        (batch.topic, value)
        for batch, values in _rows(content, stages)
        for value in values.to_pylist()
    ]


def _rows(content: bytes, stages: Sequence[Stage]) -> Iterator[tuple[SourceBatch, pa.BinaryArray]]:
    converter = make_converter("json", {}, is_key=False)
    chain = Chain(stages, retrying=_never_again(), tolerates=False)
    for frame in chain.frames(_frames(content)):
        if not isinstance(frame, Records):
            raise BenchmarkError(f"The chain made {frame} of a line.")
        batch = frame.batch
        yield batch, converter.encode(batch.topic, batch.value_schema, batch.values)


def _frames(content: bytes) -> Iterator[Frame]:
    reader = reader_of(LINES, content, limits=LIMITS)
    while (chunk := reader.next_chunk()) is not None:
        offsets = BatchOffsets(columns={"recordCount": pa.array(chunk.counts, pa.int64())})
        yield Records(
            SourceBatch(
                topic="lines",
                values=chunk.values,
                value_schema=reader.value_schema,
                source_partition=SourcePartition(filename="f"),
                offsets=offsets,
            )
        )
    reader.close()


def _never_again() -> RetryWithBackoff:
    return RetryWithBackoff(
        ErrorPolicy(),
        Progress(),
        wait=lambda seconds, _: time.sleep(seconds),
        ending=lambda: False,
    )
