"""Records that a converter, the client or the broker refuses: each is named with its place in the source."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pytest

from headrace.connect.errors import RecordError, TaskFailedError
from headrace.connect.record import Header
from headrace.connect.schema import STRING
from headrace.kafka.errors import LateRefusalError
from headrace.kafka.sender import EncodedRecords
from headrace.task.connector_spec import BoundaryKind, ErrorPolicy
from headrace.task.record_origin import InFlightRecords
from task.loop import Loop, ScriptedTask, batch, both_modes


def test_a_row_that_cannot_be_converted_is_named_and_those_before_it_stay() -> None:
    """Rows before it are committed with their offset, none after it are."""
    rows = batch("a", "b", "c", end=3)
    rows = replace(rows, values=pa.array(["a", None, "c"], pa.utf8()), value_schema=STRING)
    loop = Loop(ScriptedTask(rows), value_converter="json", kind=BoundaryKind.INTERVAL)

    with pytest.raises(RecordError, match=r"filename f, at source offset position 2: .*null value"):
        loop.run()

    assert 1 == len(loop.values())
    assert 1 == loop.position()


def test_a_column_that_cannot_be_converted_is_named_by_its_first_row() -> None:
    """A converter that names the first value refuses the nulls before it as well."""
    rows = replace(batch("a", "b", end=2), values=pa.array([None, "b"], pa.utf8()))
    loop = Loop(ScriptedTask(rows), value_converter="bytes")

    with pytest.raises(RecordError, match=r"filename f, at source offset position 1: "):
        loop.run()

    assert [] == loop.values()


def test_a_header_that_cannot_be_converted_is_named_by_its_row() -> None:
    """A converter of headers does not know whose header it sees."""
    good, bad = (Header(key="h", value=1),), (Header(key="h", value={1}),)
    loop = Loop(ScriptedTask(replace(batch("a", "b", end=2), headers=[good, bad])))

    with pytest.raises(RecordError, match=r"position 2: The header 'h' cannot be converted"):
        loop.run()

    assert ["a"] == loop.values()


def test_a_refused_message_leaves_nothing_of_its_transaction() -> None:
    """The transaction is aborted, its offsets do not move, and the error names the place."""
    task = ScriptedTask(batch("a", "bad", "c", end=3))
    loop = Loop(task, kind=BoundaryKind.INTERVAL)
    loop.sender.refuses.add(b"bad")

    with pytest.raises(RecordError, match=r"filename f.*position 2"):
        loop.run()

    assert [] == loop.values()
    assert loop.position() is None


def test_a_partition_that_the_topic_lacks_fails_the_task() -> None:
    """What comes before stays, and the error names the place."""
    astray = replace(batch("b", "c", end=3), partition=7)
    loop = Loop(ScriptedTask(batch("a", end=1), astray), kind=BoundaryKind.INTERVAL)
    loop.sender.partitions = 3

    with pytest.raises(RecordError, match=r"filename f.*position 2: There is no such"):
        loop.run()

    assert (["a"], 1) == (loop.values(), loop.position())


@both_modes
def test_a_partition_that_the_topic_lacks_is_tolerated(*, transactional: bool) -> None:
    """Each of its records is passed over at the door, and those around them are sent."""
    astray = replace(batch("b", "c", "d", end=4), partition=7)
    task = ScriptedTask(batch("a", end=1), astray, batch("e", end=5))
    loop = Loop(task, transactional=transactional, errors=ErrorPolicy(tolerate=True))
    loop.sender.partitions = 3

    loop.run()

    assert (["a", "e"], 5, 3) == (loop.values(), loop.position(), loop.progress.skipped)


@both_modes
def test_a_record_that_the_broker_refuses_is_named(*, transactional: bool) -> None:
    """It is found among what was sent since the last commit, although only its bytes are told."""
    task = ScriptedTask(batch("bad", "a", end=2), batch("b", "c", "BAD!", end=5), batch("d", end=6))
    loop = Loop(task, kind=BoundaryKind.INTERVAL, transactional=transactional)
    loop.sender.refuses_late.add(b"BAD!")

    with pytest.raises(RecordError) as caught:
        loop.run()

    told = "filename f, at source offset position 5: The broker refuses the record."
    assert f"{told} Send another one." == str(caught.value)
    assert loop.position() is None


def test_what_is_committed_is_not_blamed() -> None:
    """A record of the same size in an earlier transaction was taken."""
    loop = Loop(ScriptedTask(batch("one", end=1), batch("two", end=2)), kind=BoundaryKind.POLL)
    loop.sender.refuses_late.add(b"two")

    with pytest.raises(RecordError, match=r"at source offset position 2"):
        loop.run()

    assert 1 == loop.position()


def refusal(
    value: int | None,
    *,
    key: int | None = None,
    topic: str = "t",
    place: tuple[int, int] | None = None,
) -> LateRefusalError:
    """The broker's refusal of a record of these sizes, at that *place* if the sender knows it."""
    return LateRefusalError(
        "No.", advice="Ask.", topic=topic, key_bytes=key, value_bytes=value, place=place
    )


def sent(
    rows: InFlightRecords, values: list[bytes | None], keys: list[bytes | None] | None = None
) -> int | None:
    """Note a batch of these bytes, and return its number; positions begin at 1."""
    made = batch(*["x"] * len(values), end=len(values))
    binary = None if keys is None else pa.array(keys, pa.binary())
    encoded = EncodedRecords(topic="t", values=pa.array(values, pa.binary()), keys=binary)
    return rows.note(made, encoded).number


def test_keys_and_nulls_tell_records_apart() -> None:
    """Null has a size of its own."""
    rows = InFlightRecords()
    sent(rows, [b"aa", None, b"aa", None], [b"k", b"k", None, None])

    for row, error in enumerate(
        [refusal(2, key=1), refusal(None, key=1), refusal(2), refusal(None)], 1
    ):
        assert f"at source offset position {row}" in str(rows.located(error))


def test_records_of_one_size_are_not_told_apart() -> None:
    """The message does not claim more than is known."""
    rows = InFlightRecords()
    sent(rows, [b"a", b"bb", b"cc"])

    assert "filename f, at or after source offset position 2: No." in str(rows.located(refusal(2)))


def test_a_sender_that_knows_the_record_is_believed() -> None:
    """However many others have its size; those of another batch have another number."""
    rows = InFlightRecords()
    sent(rows, [b"aa", b"bb"])
    number = sent(rows, [b"aa", b"bb", b"cc"])
    assert number is not None

    found = rows.located(refusal(2, place=(number, 2)))

    assert "filename f, at source offset position 3: No." in str(found)
    error = refusal(2, place=(number + 1, 0))
    assert rows.located(error) is error


def test_a_refusal_that_no_one_knows_stays_as_it_is() -> None:
    """Such as that of a record of the offsets topic."""
    rows = InFlightRecords()
    sent(rows, [b"a"])
    error = refusal(1, topic="offsets")

    assert rows.located(error) is error
    assert isinstance(error, TaskFailedError)


def test_what_was_sent_is_remembered_as_far_as_the_clients_queue_reaches() -> None:
    """A transaction may be long; what is far before its end has been acknowledged."""
    rows = InFlightRecords(most_bytes=1_000)
    sent(rows, [b"old"])
    for _ in range(9):
        sent(rows, [b"x" * 200])

    error = refusal(3)
    assert rows.located(error) is error
    assert "filename f" in str(rows.located(refusal(200)))
