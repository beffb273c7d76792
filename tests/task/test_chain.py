"""Transformations between reading and writing: what they change, drop and refuse, and what that does to offsets."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence

import pyarrow as pa
import pytest

from doubles.memory_sender import MemorySender
from headrace.connect.batch import SourceBatch
from headrace.connect.columns import column_of
from headrace.connect.errors import RecordError, RetriableError, TaskFailedError
from headrace.connect.record import SourceRecord
from headrace.connect.transforming import Predicate, Transform
from headrace.task.chain import Stage
from headrace.task.connector_spec import BoundaryKind, ErrorPolicy
from headrace.transforms.filter import Filter
from headrace.transforms.predicates import RecordIsTombstone
from task.loop import FILE, Loop, ScriptedTask, batch, record


class Upper:
    """Makes text upper-case, record by record."""

    def configure(self, config: Mapping[str, str]) -> None:
        """Nothing."""

    def apply(self, record: SourceRecord) -> SourceRecord | None:
        """The record in upper case; refuses ``bad``, drops ``gone``."""
        if record.value == "bad":
            raise RecordError("It is bad.")
        if record.value == "broken":
            raise ValueError("no such thing")
        if record.value == "gone":
            return None
        return dataclasses.replace(record, value=str(record.value).upper())


class UpperColumns(Upper):
    """The same for whole columns of what is neither bad nor gone."""

    def apply_batch(self, batch: SourceBatch) -> Sequence[SourceBatch] | None:
        """The column in upper case."""
        texts = batch.values.to_pylist()
        if "bad" in texts:
            raise RecordError("It is bad.", row=texts.index("bad"))
        if "broken" in texts:
            raise ValueError("no such thing")
        if "gone" in texts:
            return None
        return [dataclasses.replace(batch, values=pa.array([text.upper() for text in texts]))]


class Equals:
    """True of one text."""

    def __init__(self, text: str) -> None:
        self._text = text

    def configure(self, config: Mapping[str, str]) -> None:
        """Nothing."""

    def test(self, record: SourceRecord) -> bool:
        """Whether it is that text."""
        return record.value == self._text

    def test_batch(self, batch: SourceBatch) -> pa.BooleanArray:
        """Of which rows it is."""
        return pa.array([value == self._text for value in batch.values.to_pylist()])


BOTH_WAYS = pytest.mark.parametrize("upper", [Upper(), UpperColumns()], ids=["records", "batches"])


def loop(
    *polled: object,
    stages: Sequence[Stage],
    errors: ErrorPolicy | None = None,
    kind: BoundaryKind = BoundaryKind.POLL,
) -> Loop:
    """A loop with a chain."""
    return Loop(ScriptedTask(*polled), stages=stages, errors=errors or ErrorPolicy(), kind=kind)


@BOTH_WAYS
def test_records_are_sent_as_they_are_behind_the_chain(upper: Transform):
    """Each step gets what the one before it made."""
    running = loop(batch("a", "b", end=2), stages=[Stage(transform=upper)])

    running.run()

    assert ["A", "B"] == running.values()
    assert 2 == running.position()


@BOTH_WAYS
@pytest.mark.parametrize("dropped", ["a", "b", "c"])
def test_a_dropped_record_moves_its_offset(upper: Transform, dropped: str):
    """Wherever it is in its batch, nothing else is lost, and nothing is read again."""
    stages = [Stage(transform=Filter(), predicate=Equals(dropped)), Stage(transform=upper)]
    running = loop(batch("a", "b", "c", end=3), stages=stages)

    running.run()

    assert [text.upper() for text in "abc" if text != dropped] == running.values()
    assert 3 == running.position()


def test_records_that_are_all_dropped_move_their_offset():
    """A transaction of offsets alone, and the task is shown them."""
    running = loop(batch("a", "b", end=2), stages=[Stage(transform=Filter())])

    running.run()

    assert ([], 2) == (running.values(), running.position())
    assert {FILE: {"position": 2}} in running.task.shown  # type: ignore[attr-defined]


@BOTH_WAYS
def test_a_step_applies_where_its_predicate_is_true(upper: Transform):
    """The others pass, and the order holds."""
    stages = [Stage(transform=upper, predicate=Equals("b"))]
    running = loop(batch("a", "b", "a", "b", end=4), stages=stages)

    running.run()

    assert ["a", "B", "a", "B"] == running.values()


@BOTH_WAYS
def test_a_negated_predicate_says_the_opposite(upper: Transform):
    """As ``negate`` of Kafka Connect."""
    stages = [Stage(transform=upper, predicate=Equals("b"), negate=True)]
    running = loop(batch("a", "b", "a", end=3), stages=stages)

    running.run()

    assert ["A", "b", "A"] == running.values()


@BOTH_WAYS
@pytest.mark.parametrize(("bad", "message"), [("bad", "It is bad."), ("broken", "no such thing")])
def test_a_record_that_cannot_be_transformed_fails_the_task_behind_those_before_it(
    upper: Transform, bad: str, message: str
):
    """Any exception counts, and it is reported where the record is."""
    running = loop(batch("a", bad, "c", end=3), stages=[Stage(transform=upper)])

    with pytest.raises(RecordError, match=message) as caught:
        running.run()

    assert (["A"], 1) == (running.values(), running.position())
    assert ("filename f", "at source offset position 2") == (
        caught.value.native_key,
        caught.value.position,
    )


@BOTH_WAYS
@pytest.mark.parametrize("bad", ["bad", "broken"])
def test_a_tolerated_record_becomes_a_dead_letter(upper: Transform, bad: str):
    """In the stage TRANSFORMATION, by the class that refused it; the others continue."""
    running = loop(
        batch("a", bad, "c", end=3),
        stages=[Stage(transform=upper)],
        errors=ErrorPolicy(tolerate=True, dead_letters="letters", headers=True),
    )

    running.run()

    assert [("t", "A"), ("letters", bad), ("t", "C")] == [
        (topic, (value or b"").decode()) for topic, _, value in running.sender.committed
    ]
    assert (3, 1) == (running.position(), running.progress.dead_lettered)
    headers = dict(running.sender.headers[1])
    assert b"TRANSFORMATION" == headers["__connect.errors.stage"]
    assert headers["__connect.errors.class.name"].endswith(type(upper).__name__.encode())


def test_the_task_is_told_of_its_own_records():
    """Hooks get what the task returned, in order; what was dropped has no place in Kafka."""
    reported = list[tuple[str, bool]]()

    class Telling(ScriptedTask):
        def commit_record(self, record: SourceRecord, metadata: object) -> None:
            reported.append((str(record.value), metadata is None))

    running = Loop(
        Telling([record("a", 1), record("gone", 2), record("c", 3)]),
        stages=[Stage(transform=Upper())],
    )
    running.run()

    assert {("a", False), ("gone", True), ("c", False)} == set(reported)
    assert 3 == len(reported)


class Flaky(Upper):
    """Fails a few times in a way that may pass."""

    def __init__(self, failures: int) -> None:
        self._left = failures

    def apply(self, record: SourceRecord) -> SourceRecord | None:
        """The record in upper case, in the end."""
        if self._left:
            self._left -= 1
            raise RetriableError("Not now.")
        return super().apply(record)


def test_what_may_pass_is_tried_again():
    """For as long as errors.retry.timeout allows."""
    running = loop(
        batch("a", end=1),
        stages=[Stage(transform=Flaky(3))],
        errors=ErrorPolicy(retry_seconds=None),
    )

    running.run()

    assert ["A"] == running.values()


def test_what_is_tried_again_is_not_passed_by_its_offset():
    """A commit meanwhile does not ask the task, whose position is after the record by then."""
    running = loop(
        batch("a", end=1),
        stages=[Stage(transform=Flaky(3))],
        errors=ErrorPolicy(retry_seconds=None),
        kind=BoundaryKind.INTERVAL,
    )
    running.interval = 0.0
    running.task.update = lambda _: {FILE: {"position": 9}}  # type: ignore[attr-defined]
    positions = list[int | None]()
    running.lease.meanwhile = lambda: positions.append(running.position())

    running.run()

    assert ([None] * 3, 9) == (positions, running.position())


@pytest.mark.parametrize("error", [OSError("broken"), RecordError("broken")])
def test_a_commit_that_fails_meanwhile_is_not_blamed_on_the_record(
    error: Exception, monkeypatch: pytest.MonkeyPatch
):
    """Which would be passed over for it otherwise."""
    running = loop(
        [batch("a", end=1), batch("b", end=2)],
        stages=[Stage(transform=Flaky(9), predicate=Equals("b"))],
        errors=ErrorPolicy(retry_seconds=5.0, tolerate=True),
        kind=BoundaryKind.INTERVAL,
    )
    running.interval = 0.0

    def commit(_sender: MemorySender) -> None:
        raise error

    # The first piece is committed where the second one is tried again.
    monkeypatch.setattr(MemorySender, "commit", commit)
    with pytest.raises(TaskFailedError, match="broken"):
        running.run()

    assert 0 == running.progress.record_errors


def test_without_a_retry_timeout_the_work_is_planned_again():
    """Nothing is sent, and nothing is lost."""
    running = loop(batch("a", end=1), stages=[Stage(transform=Flaky(1))])

    with pytest.raises(RetriableError, match="Not now"):
        running.run()

    assert ([], None) == (running.values(), running.position())


@pytest.mark.parametrize("kind", list(BoundaryKind))
def test_dropped_records_are_committed_with_every_boundary(kind: BoundaryKind):
    """Where the connector places the ends, with its next one."""
    running = loop(batch("a", end=1), stages=[Stage(transform=Filter())], kind=kind)

    def commit() -> SourceBatch:
        running.requests.commit_transaction()
        return batch("b", end=2)

    running.task.script.append(commit)  # type: ignore[attr-defined]
    running.run()

    assert 2 == running.position()


def test_a_json_document_is_transformed_as_what_it_stands_for():
    """And is a document again after the chain, its numbers as they were."""

    class Add(Upper):
        def apply(self, record: SourceRecord) -> SourceRecord | None:
            assert isinstance(record.value, dict)
            return dataclasses.replace(record, value={**record.value, "more": True})

    documents = column_of(None, [{"a": 1}])
    exact = pa.array(['{"a":0.10000000000000000000001,"b":1.50,"c":null}'])
    polled = dataclasses.replace(
        batch("x", end=1), values=pa.ExtensionArray.from_storage(documents.type, exact)
    )
    running = loop(polled, stages=[Stage(transform=Add())])

    running.run()

    assert ['{"a":0.10000000000000000000001,"b":1.5,"c":null,"more":true}'] == running.values()


def test_a_predicate_can_tell_tombstones():
    """Which have no value at all."""
    predicate: Predicate = RecordIsTombstone()
    polled = dataclasses.replace(batch("x", "y", end=2), values=pa.array(["a", None]))
    running = loop(polled, stages=[Stage(transform=Filter(), predicate=predicate)])

    running.run()

    assert (["a"], 2) == (running.values(), running.position())
