"""What authors' tasks, predicates, transformations and converters return by mistake: told, and nothing is lost."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from headrace.connect.batch import SourceBatch
from headrace.connect.errors import RecordError, TaskFailedError
from headrace.connect.record import SourceRecord
from headrace.connect.schema import Schema
from headrace.connect.transforming import Predicate
from headrace.slot.stages import Stage
from headrace.slot.work import ErrorPolicy
from headrace.transforms.filter import Filter
from slot.loop import Loop, ScriptedTask, batch, record


class Plugin:
    """What needs no settings."""

    def configure(self, config: Mapping[str, str], **more: object) -> None:
        """Nothing."""


class ByPattern(Plugin):
    """True of texts in which *pattern* is, told by a match or by ``None``."""

    def test(self, record: SourceRecord) -> Any:  # noqa: ANN401 (the slip)
        """No boolean, but as true as one."""
        return re.match("debug", record.value)


@dataclass
class Told(Plugin):
    """Says *told* of a batch, and the truth of a record."""

    told: pa.BooleanArray

    def test(self, record: SourceRecord) -> bool:
        """Of the debug rows."""
        return record.value.startswith("debug")

    def test_batch(self, batch: SourceBatch) -> pa.BooleanArray:
        """Not what it should."""
        return self.told


class Lengths(Plugin):
    """Returns the length of a text instead of a record."""

    def apply(self, record: SourceRecord) -> Any:  # noqa: ANN401 (the slip)
        """No record, for ``bad``."""
        return len(record.value) if record.value == "bad" else record


class Digits(Plugin):
    """Converts digits."""

    def encode(self, topic: str, schema: Schema | None, values: pa.Array) -> pa.BinaryArray:
        """Raises what ``int`` raises."""
        return pa.array([str(int(text)).encode() for text in values.to_pylist()], pa.binary())


@dataclass
class Returns(Plugin):
    """Converts a column into *what*."""

    what: pa.Array

    def encode(self, topic: str, schema: Schema | None, values: pa.Array) -> pa.BinaryArray:
        """As it is."""
        return self.what


class TooMany(Plugin):
    """Converts one row at a time, and no more."""

    def encode(self, topic: str, schema: Schema | None, values: pa.Array) -> pa.BinaryArray:
        """The bytes."""
        if len(values) > 1:
            raise OverflowError("too many")
        return pc.cast(values, pa.binary())


def _yielding() -> Iterator[SourceRecord]:
    yield record("a", 1)


@pytest.mark.parametrize(
    ("polled", "told"),
    [
        (_yielding(), "poll returned 'generator'"),
        (iter([batch("a", end=1)]), "poll returned 'list_iterator'"),
        ({"a": 1}, "poll returned 'dict'"),
        ("text", "poll returned 'str' with 'str' in it"),
        ([record("a", 1), None], "poll returned 'list' with 'NoneType' in it"),
    ],
)
def test_what_no_poll_may_return_fails_the_task(polled: object, told: str) -> None:
    """What can be gone through once, among it, would look like nothing at all."""
    running = Loop(ScriptedTask(polled))

    with pytest.raises(TypeError, match=f"{told}: return a SourceBatch, a list of those"):
        running.run()

    assert ([], None) == (running.values(), running.position())


def test_batches_and_records_do_not_come_together() -> None:
    """Their order is not known."""
    running = Loop(ScriptedTask([batch("a", end=1), record("b", 2)]))

    with pytest.raises(TypeError, match="in one list"):
        running.run()

    assert [] == running.values()


@pytest.mark.parametrize(
    ("columns", "told"),
    [
        ({"values": pa.chunked_array([["a"]])}, "call combine_chunks"),
        ({"values": ["a"]}, "not 'list'"),
        ({"keys": np.array(["k"])}, "keys of a batch are a pyarrow Array, not 'ndarray'"),
        ({"timestamps": 1.7e9}, "milliseconds"),
        ({"timestamps": pa.array([1], pa.timestamp("s"))}, "milliseconds"),
    ],
)
def test_a_batch_is_made_of_columns(columns: dict[str, Any], told: str) -> None:
    """Where it is made it is told, and not as a bad record behind it, which may be passed over."""
    with pytest.raises(TypeError, match=told):
        dataclasses.replace(batch("a", end=1), **columns)


@pytest.mark.parametrize(
    "predicate",
    [ByPattern(), Told(pa.array([True, None, False])), Told(pa.array([True]))],
    ids=["a match", "nulls", "too few"],
)
@pytest.mark.parametrize(("negate", "left"), [(False, ["b", "c"]), (True, ["debug a"])])
def test_only_records_of_which_a_predicate_is_true_are_dropped(
    predicate: Predicate, *, negate: bool, left: list[str]
) -> None:
    """Whatever stands for true, and where a batch is not told of each row."""
    dropping = Stage(transform=Filter(), predicate=predicate, negate=negate)
    running = Loop(ScriptedTask(batch("debug a", "b", "c", end=3)), stages=[dropping])

    running.run()

    assert (left, 3) == (running.values(), running.position())


def test_what_is_no_record_behind_a_transformation_is_told() -> None:
    """With the class and the place."""
    running = Loop(ScriptedTask(batch("a", "bad", end=2)), stages=[Stage(transform=Lengths())])

    with pytest.raises(RecordError, match="position 2: Lengths returned 'int': return a Source"):
        running.run()

    assert (["a"], 1) == (running.values(), running.position())


def test_whatever_a_converter_raises_is_about_a_record() -> None:
    """Its row is looked for, and the task fails behind those before it."""
    running = Loop(ScriptedTask(batch("1", "2", "x", "4", end=4)), converter=Digits())

    with pytest.raises(RecordError, match="position 3: The converter raised ValueError: invalid"):
        running.run()

    assert (["1", "2"], 2) == (running.values(), running.position())


def test_whatever_a_converter_raises_is_tolerated() -> None:
    """As in Kafka Connect; the others are there once."""
    running = Loop(
        ScriptedTask(batch("1", "x", "3", "y", end=4)),
        converter=Digits(),
        errors=ErrorPolicy(tolerate=True),
    )

    running.run()

    assert (["1", "3"], 4) == (running.values(), running.position())
    assert 2 == running.progress.record_errors


def test_what_is_raised_for_no_single_record_is_not_tolerated() -> None:
    """It is not known which one to pass over."""
    running = Loop(
        ScriptedTask(batch("a", "b", end=2)),
        converter=TooMany(),
        errors=ErrorPolicy(tolerate=True),
    )

    with pytest.raises(OverflowError, match="too many"):
        running.run()

    assert ([], None) == (running.values(), running.position())


@pytest.mark.parametrize(
    ("what", "told"),
    [
        (pa.array([b"a"]), "Returns.encode made 1 of type binary from 2 values"),
        (pa.array(["a", "b"]), "Returns.encode made 2 of type string from 2 values"),
    ],
)
def test_a_converter_that_leaves_rows_out_fails_the_task(what: pa.Array, told: str) -> None:
    """With tolerance, too: nobody knows which rows are left."""
    running = Loop(
        ScriptedTask(batch("a", "b", end=2)),
        converter=Returns(what),
        errors=ErrorPolicy(tolerate=True),
    )

    with pytest.raises(TaskFailedError, match=told):
        running.run()

    assert ([], None) == (running.values(), running.position())
