"""Chains do to batches what they do to records, whatever their steps and conditions."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from hypothesis import assume, given, settings
from hypothesis import strategies as some

from headrace.connect.batch import BatchOffsets, SourceBatch
from headrace.connect.errors import ConfigError, RecordError
from headrace.connect.record import SourceRecord
from headrace.connect.transforming import Predicate, Transform
from headrace.task.chain import Stage
from headrace.task.connector_spec import ErrorPolicy
from headrace.transforms.catalogue import make_predicate, make_transform
from project.sampling import drawn
from task.loop import Loop, ScriptedTask
from transforms.drawn_settings import OF_OTHERS, OF_STRUCTS, WITH_SIDES
from transforms.generated import ANY

PREDICATES = {
    "RecordIsTombstone": {},
    "TopicNameMatches": {"pattern": "top.*"},
    "HasHeaderKey": {"name": "h"},
}


@dataclass
class ByRecords:
    """A transformation without its way for batches."""

    columnar: Transform

    def configure(self, config: Mapping[str, str]) -> None:
        """It is, already."""

    def apply(self, record: SourceRecord) -> SourceRecord | None:
        """As it does."""
        return self.columnar.apply(record)


@dataclass
class EachThird:
    """True of every third record, from one of the first three on."""

    first: int

    def configure(self, config: Mapping[str, str]) -> None:
        """It is, already."""

    def test(self, record: SourceRecord) -> bool:
        """By the record's source offset."""
        assert record.source_offset is not None
        return int(str(record.source_offset["line"])) % 3 == self.first

    def test_batch(self, batch: SourceBatch) -> pa.BooleanArray:
        """By the column of them."""
        assert batch.offsets is not None
        return pa.array(batch.offsets.columns["line"].to_numpy() % 3 == self.first)


@some.composite
def stages(draw: some.DrawFn) -> Stage:
    """A step, and its condition."""
    drawn = {**OF_STRUCTS, **OF_OTHERS}
    name = draw(some.sampled_from(sorted(drawn)))
    side = draw(some.sampled_from(["$Key", "$Value"])) if name in WITH_SIDES else ""
    try:
        transform = make_transform(f"{name}{side}", draw(some.fixed_dictionaries(drawn[name])))
    except ConfigError:
        assume(condition=False)
        raise
    return Stage(transform=transform, predicate=draw(_predicates()), negate=draw(some.booleans()))


@some.composite
def _predicates(draw: some.DrawFn) -> Predicate | None:
    name = draw(some.sampled_from([None, *["EachThird"] * 4, *PREDICATES]))
    if name == "EachThird":
        return EachThird(draw(some.integers(0, 2)))
    return None if name is None else make_predicate(name, PREDICATES[name])


@settings(max_examples=drawn(300))
@given(
    batch=ANY,
    chain=some.lists(stages(), min_size=1, max_size=4),
    converter=some.sampled_from(["json", "string"]),
    tolerate=some.booleans(),
)
def test_what_is_sent_and_committed_is_the_same(
    *, batch: SourceBatch, chain: Sequence[Stage], converter: str, tolerate: bool
) -> None:
    """In the same order, with the same source offsets, errors and refusals."""
    lines = pa.array(range(1, len(batch) + 1), pa.int64())
    numbered = dataclasses.replace(batch, offsets=BatchOffsets(columns={"line": lines}))
    by_records = [dataclasses.replace(each, transform=ByRecords(each.transform)) for each in chain]

    def outcome(of: Sequence[Stage]) -> Any:  # noqa: ANN401 (only compared)
        running = Loop(
            ScriptedTask(numbered),
            stages=of,
            value_converter=converter,
            errors=ErrorPolicy(tolerate=tolerate),
        )
        try:
            ended = str(running.run())
        except RecordError as error:
            ended = str(error)
        sent = running.sender
        return ended, sent.committed, sent.offsets, running.progress.record_errors

    assert outcome(by_records) == outcome(chain)
