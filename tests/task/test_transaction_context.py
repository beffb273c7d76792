"""What a task asks of its transaction context, and what becomes of it (KIP-618)."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import cast

import pytest

from headrace.connect.batch import SourceBatch
from headrace.connect.errors import TaskFailedError
from headrace.connect.record import RecordMetadata, SourceRecord
from headrace.task.chain import Stage
from headrace.task.connector_spec import BoundaryKind
from headrace.task.transaction_boundary import BoundaryRequests
from task.loop import Loop, ScriptedTask, batch, record

A, B, C = record("a", 1), record("b", 2), record("c", 3)
Ask = Callable[[BoundaryRequests], None]


class DroppingB:
    """A transformation that drops ``b``."""

    def configure(self, config: Mapping[str, str]) -> None:
        """Nothing."""

    def apply(self, record: SourceRecord) -> SourceRecord | None:
        """All but ``b``."""
        return None if record.value == "b" else record


DROPS_B = (Stage(transform=DroppingB()),)


def polled(*polls: tuple[Ask, object], stages: Sequence[Stage] = ()) -> Loop:
    """Each poll asks for something and returns something, in a transaction that the connector ends."""
    loop = Loop(ScriptedTask(), kind=BoundaryKind.CONNECTOR, stages=stages)

    def poll(ask: Ask, returned: object) -> object:
        ask(loop.requests)
        return returned

    script = [lambda each=each: poll(*each) for each in polls]
    cast("ScriptedTask", loop.task).script = list(script)
    loop.run()
    return loop


def nothing(_: BoundaryRequests) -> None:
    """Asks for nothing."""


def commit(after: SourceRecord | None = None) -> Ask:
    """Asks for a commit."""
    return lambda requests: requests.commit_transaction(*[after] if after else [])


def abort(after: SourceRecord | None = None) -> Ask:
    """Asks for an abort."""
    return lambda requests: requests.abort_transaction(*[after] if after else [])


def both(first: Ask, second: Ask) -> Ask:
    """Asks for both."""

    def ask(requests: BoundaryRequests) -> None:
        first(requests)
        second(requests)

    return ask


def test_an_abort_at_a_record_keeps_what_is_behind_it() -> None:
    """What is up to the record is thrown away; the rest waits for the next end."""
    loop = polled((both(abort(B), commit()), [A, B, C]))

    assert ["c"] == loop.values()
    assert 3 == loop.position()


def test_the_offsets_of_an_abort_are_a_transaction_of_their_own() -> None:
    """One is aborted, another is committed with nothing but them."""
    loop = polled((abort(), [A]))

    assert (1, 1) == (loop.sender.aborts, loop.sender.commits)
    assert ([], 1) == (loop.values(), loop.position())


def test_what_was_aborted_is_told_to_the_task_without_a_place() -> None:
    """It is done for good, so upstream must not send it again; but it is not in Kafka."""
    reported: list[tuple[object, RecordMetadata | None]] = []

    class Telling(ScriptedTask):
        def commit_record(self, record: SourceRecord, metadata: RecordMetadata | None) -> None:
            reported.append((record.value, metadata))

    task = Telling()
    loop = Loop(task, kind=BoundaryKind.CONNECTOR)
    task.script = [lambda: loop.requests.abort_transaction() or [A, B]]
    loop.run()

    assert [("a", None), ("b", None)] == reported


@pytest.mark.parametrize(
    ("ask", "values"),
    [
        pytest.param(both(commit(B), abort()), ["a", "b"], id="commit"),
        pytest.param(both(abort(B), commit()), [], id="abort"),
    ],
)
def test_what_is_asked_at_the_last_record_comes_before_what_is_asked_of_the_poll(
    ask: Ask, values: list[str]
) -> None:
    """What is asked of the poll finds an empty transaction."""
    loop = polled((ask, [A, B]))

    assert (values, 2) == (loop.values(), loop.position())


@pytest.mark.parametrize(
    ("ask", "values"), [(commit(B), ["a"]), (abort(B), [])], ids=["commit", "abort"]
)
def test_what_is_asked_at_a_record_that_is_dropped_takes_effect(
    ask: Ask, values: list[str]
) -> None:
    """A transformation drops it; the transaction ends there all the same, and the offset passes it."""
    loop = polled((ask, [A, B, C]), stages=DROPS_B)

    assert (values, 2) == (loop.values(), loop.position())


@pytest.mark.parametrize("returned", [None, []], ids=["none", "empty"])
def test_what_is_asked_in_a_poll_without_records_takes_effect(returned: object) -> None:
    """It ends what earlier polls have begun."""
    loop = polled((nothing, [A]), (commit(), returned))

    assert (["a"], 1) == (loop.values(), loop.position())


def test_a_commit_of_nothing_is_no_transaction_but_is_told() -> None:
    """``commit`` is called as after any other."""
    loop = polled((commit(), []))

    assert 0 == loop.sender.commits
    assert 1 == cast("ScriptedTask", loop.task).commits


def test_an_abort_of_nothing_is_warned_of(caplog: pytest.LogCaptureFixture) -> None:
    """And moves the offset of what was dropped since."""
    loop = polled((abort(), [B]), stages=DROPS_B)

    assert "none is open" in caplog.text
    assert 0 == loop.sender.aborts
    assert 2 == loop.position()


def test_a_request_waits_for_its_record() -> None:
    """It may be made before the poll that returns the record."""
    loop = polled((commit(B), [A]), (nothing, [B, C]))

    assert (["a", "b"], 2) == (loop.values(), loop.position())


def test_a_request_counts_once() -> None:
    """An equal record later ends nothing."""
    again = dataclasses.replace(A)
    loop = polled((commit(A), [A, again]))

    assert ["a"] == loop.values()


@pytest.mark.parametrize(
    ("partition", "place"), [(None, "t/null"), (3, "t/3")], ids=["any partition", "partition"]
)
@pytest.mark.parametrize("commits_first", [True, False])
def test_commit_and_abort_of_one_record_fail_the_task(
    partition: int | None, place: str, *, commits_first: bool
) -> None:
    """Whichever is asked for first, in Connect's words."""
    one = dataclasses.replace(A, partition=partition)
    asked = [commit(one), abort(one)] if commits_first else [abort(one), commit(one)]

    with pytest.raises(TaskFailedError) as raised:
        both(*asked)(BoundaryRequests())

    assert (
        f"Connector requested both commit and abort of same record against topic/partition {place}"
        == str(raised.value)
    )


@pytest.mark.parametrize("commits_first", [True, False])
def test_commit_and_abort_of_one_poll_fail_the_task(*, commits_first: bool) -> None:
    """Nothing of it is committed, and no offset moves."""
    ask = both(commit(), abort()) if commits_first else both(abort(), commit())

    with pytest.raises(TaskFailedError, match="both commit and abort of same transaction"):
        polled((ask, [A]))


@pytest.mark.parametrize("method", ["commit_transaction", "abort_transaction"])
def test_a_record_that_is_none_is_refused(method: str) -> None:
    """It would be taken for all of the poll."""
    with pytest.raises(TaskFailedError) as raised:
        getattr(BoundaryRequests(), method)(None)

    assert "Source record used to define transaction boundaries may not be null" == str(
        raised.value
    )


def test_ends_at_records_need_plain_records() -> None:
    """Rows of a batch equal no record, so the request would never be heard."""
    with pytest.raises(TaskFailedError, match="return plain records"):
        polled((commit(A), batch("a", end=1)))


class Counting(ScriptedTask):
    """Notes how long batches are."""

    def commit_batch(self, batch: SourceBatch) -> None:
        """Note it."""
        self.lengths = [*getattr(self, "lengths", []), len(batch)]


def test_records_between_two_ends_travel_together() -> None:
    """A poll with one end in it is two batches, not as many as it has records."""
    records = [record(str(number), number) for number in range(100)]
    task = Counting()
    loop = Loop(task, kind=BoundaryKind.CONNECTOR)

    def poll() -> Sequence[SourceRecord]:
        both(commit(records[39]), commit())(loop.requests)
        return records

    task.script = [poll]
    loop.run()

    assert [40, 60] == task.lengths
