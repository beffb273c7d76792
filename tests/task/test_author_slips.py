"""What authors' tasks, predicates, transformations and converters return by mistake: told, and nothing is lost."""

from __future__ import annotations

import dataclasses
import datetime as dt
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from headrace.connect.batch import SourceBatch
from headrace.connect.errors import RecordError, TaskFailedError
from headrace.connect.header_columns import HeaderColumn, HeaderColumns
from headrace.connect.record import Header, SourceRecord
from headrace.connect.schema import STRING, Schema
from headrace.connect.transforming import Predicate
from headrace.task.chain import Stage
from headrace.task.connector_spec import ErrorPolicy
from headrace.task.encoding import Encoder
from headrace.transforms.filter import Filter
from task.loop import FILE, Loop, ScriptedTask, batch, record


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
    """Answers *answer* for a batch, and the truth of a record."""

    answer: pa.BooleanArray

    def test(self, record: SourceRecord) -> bool:
        """Of the debug rows."""
        return record.value.startswith("debug")

    def test_batch(self, batch: SourceBatch) -> pa.BooleanArray:
        """Not what it should."""
        return self.answer


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

    what: Any

    def encode(self, topic: str, schema: Schema | None, values: pa.Array) -> pa.BinaryArray:
        """As it is."""
        return self.what

    def encode_header(self, topic: str, header: Header) -> bytes | None:
        """Nothing: all at once."""
        return None

    def encode_headers(
        self, topic: str, key: str, schema: Schema | None, values: pa.Array
    ) -> pa.BinaryArray:
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
    ("polled", "message"),
    [
        (_yielding(), "poll returned 'generator'"),
        (iter([batch("a", end=1)]), "poll returned 'list_iterator'"),
        ({"a": 1}, "poll returned 'dict'"),
        ("text", "poll returned 'str' with 'str' in it"),
        ([record("a", 1), None], "poll returned 'list' with 'NoneType' in it"),
    ],
)
def test_what_no_poll_may_return_fails_the_task(polled: object, message: str) -> None:
    """What can be gone through once, among it, would look like nothing at all."""
    running = Loop(ScriptedTask(polled))

    with pytest.raises(TypeError, match=f"{message}: return a SourceBatch, a list of those"):
        running.run()

    assert ([], None) == (running.values(), running.position())


def test_batches_and_records_do_not_come_together() -> None:
    """Their order is not known."""
    running = Loop(ScriptedTask([batch("a", end=1), record("b", 2)]))

    with pytest.raises(TypeError, match="in one list"):
        running.run()

    assert [] == running.values()


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"values": pa.chunked_array([["a"]])}, "call combine_chunks"),
        ({"values": ["a"]}, "not 'list'"),
        ({"keys": np.array(["k"])}, "keys of a batch are a pyarrow Array, not 'ndarray'"),
        ({"timestamps": 1.7e9}, "milliseconds"),
        ({"timestamps": pa.array([1], pa.timestamp("s"))}, "milliseconds"),
    ],
)
def test_a_batch_is_made_of_columns(columns: dict[str, Any], message: str) -> None:
    """The error is raised where it is made, and not as a bad record later, which could be skipped."""
    with pytest.raises(TypeError, match=message):
        dataclasses.replace(batch("a", end=1), **columns)


@pytest.mark.parametrize(
    "predicate",
    [
        ByPattern(),
        Told(pa.array([True, None, False])),
        Told(pa.array([True])),
        Told(pa.array([], pa.bool_())),
        Told(pa.array([0, 1, 2])),
    ],
    ids=["a match", "nulls", "too few", "none", "row numbers"],
)
@pytest.mark.parametrize(("negate", "left"), [(False, ["b", "c"]), (True, ["debug a"])])
def test_only_records_of_which_a_predicate_is_true_are_dropped(
    predicate: Predicate, *, negate: bool, left: list[str]
) -> None:
    """Whatever stands for true, and if a batch's answer is not one for each row."""
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
    """Its row is looked for, and the task fails after those before it."""
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
    ("what", "message"),
    [
        (pa.array([b"a"]), "Returns returned 1 of type binary for 2 values"),
        (pa.array([], pa.binary()), "Returns returned 0 of type binary for 2 values"),
        (pa.array([b"a", b"b"] * 2), "Returns returned 4 of type binary for 2 values"),
        (pa.array(["a", "b"]), "Returns returned 2 of type string for 2 values"),
        ([b"a", b"b"], "Returns returned 'list' for 2 values"),
    ],
)
def test_a_converter_that_leaves_rows_out_fails_the_task(what: object, message: str) -> None:
    """With tolerance, too: no one knows which rows are left."""
    running = Loop(
        ScriptedTask(batch("a", "b", end=2)),
        converter=Returns(what),
        errors=ErrorPolicy(tolerate=True),
    )

    with pytest.raises(TaskFailedError, match=message):
        running.run()

    assert ([], None) == (running.values(), running.position())


def test_a_header_converter_that_leaves_rows_out_fails_the_task() -> None:
    """Headers are columns where all rows have the same ones."""
    column = HeaderColumn(key="h", values=pa.array(["x", "y"]), schema=STRING)
    headed = dataclasses.replace(batch("a", "b", end=2), headers=HeaderColumns([column], rows=2))
    encoder = Encoder(TooMany(), Returns(None), Returns(pa.array([b"x"])))

    with pytest.raises(TaskFailedError, match="Returns returned 1 of type binary for 2 values"):
        encoder.encoded(headed)


class Backwards(Plugin):
    """Keeps records, but turns batches round."""

    def apply(self, record: SourceRecord) -> SourceRecord:
        """As it is."""
        return record

    def apply_batch(self, batch: SourceBatch) -> Sequence[SourceBatch]:
        """The last row first."""
        return [batch.take(pa.array(range(len(batch) - 1, -1, -1)))]


def test_rows_keep_their_order() -> None:
    """Otherwise they would have each other's source offsets."""
    running = Loop(ScriptedTask(batch("a", "b", end=2)), stages=[Stage(transform=Backwards())])

    running.run()

    assert (["a", "b"], 2) == (running.values(), running.position())


def test_a_task_may_go_on_counting_in_the_same_mapping() -> None:
    """What is counted after a record is not its source offset."""
    position = {"position": 0}

    def counted(value: str) -> SourceRecord:
        position["position"] += 1
        return SourceRecord(topic="t", value=value, source_partition=FILE, source_offset=position)

    def ahead() -> list[SourceRecord]:
        polled = [counted("a"), counted("b")]
        counted("c")
        return polled

    running = Loop(ScriptedTask(ahead))

    running.run()

    assert (["a", "b"], 2) == (running.values(), running.position())


@pytest.mark.parametrize("timestamp", [1.7e9, "17", dt.datetime(2020, 1, 1, tzinfo=dt.UTC)])
def test_a_timestamp_is_in_whole_milliseconds(timestamp: Any) -> None:  # noqa: ANN401 (the slip)
    """Seconds of Python's clocks would be taken for something else."""
    with pytest.raises(TypeError, match="in whole milliseconds"):
        dataclasses.replace(record("a", 1), timestamp=timestamp)
