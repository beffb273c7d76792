"""Bad records that are passed over: a dead letter or a count for each, and every offset in its place."""

from __future__ import annotations

import json
import logging
from dataclasses import replace

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.connect.batch import SourceBatch
from headrace.connect.errors import RecordError, TaskFailedError
from headrace.connect.record import BadRecord, Header, RecordMetadata, SourceRecord
from headrace.connect.schema import INT64, STRING, TIMESTAMP
from headrace.kafka.sender import EncodedRecords
from headrace.observe.secret_masking import Secrets
from headrace.task.connector_spec import BoundaryKind, ErrorPolicy
from headrace.task.dead_letters import PREFIX, DeadLetters, SkippedRecord, raw_value
from headrace.task.slot_work import EndReason
from task.loop import FILE, Loop, ScriptedTask, batch, both_modes, record

DEAD = ErrorPolicy(tolerate=True, dead_letters="dead")
TOLD = replace(DEAD, headers=True)
SKIPPED = ErrorPolicy(tolerate=True)
LONG = "long" * 5_000
OFFSETS = bytes([0, 0, 0, 0, 1, 0, 0, 0])


def bad(raw: bytes | None, position: int, *, reason: str = "It is bad.") -> RecordError:
    """What a task raises for a record that it cannot read."""
    return RecordError(
        reason,
        native_key="f",
        position=f"byte {position}",
        bad=BadRecord(
            source_partition=FILE,
            source_offset={"position": position},
            topic="t",
            raw=raw,
            reference={"object": "f", "from": position - 1, "to": position},
        ),
    )


def sent(loop: Loop) -> list[tuple[str, bytes | None]]:
    """Topics and values of what is committed, in order."""
    return [(topic, value) for topic, _, value in loop.sender.committed]


def headers(loop: Loop, index: int = -1) -> dict[str, str]:
    """The headers of one committed record."""
    return {key: (value or b"").decode() for key, value in loop.sender.headers[index]}


def nullable(*values: str | None) -> SourceBatch:
    """Rows of which the nulls cannot be converted to JSON."""
    rows = batch(*["x"] * len(values), end=len(values))
    return replace(rows, values=pa.array(values, pa.utf8()), value_schema=STRING)


# ------------------------------------------------------------------ reading


@both_modes
def test_a_record_that_cannot_be_read_becomes_a_letter_in_its_place(*, transactional: bool) -> None:
    """Its raw bytes are between its neighbours, and the offset passes it."""
    task = ScriptedTask(batch("a", end=1), bad(b"{b", 2), batch("c", end=3), bad(b"{d", 4))
    loop = Loop(task, errors=DEAD, transactional=transactional, kind=BoundaryKind.INTERVAL)

    loop.run()

    assert [("t", b"a"), ("dead", b"{b"), ("t", b"c"), ("dead", b"{d")] == sent(loop)
    assert 4 == loop.position()
    assert (2, 2, 0) == (
        loop.progress.committed_records,
        loop.progress.dead_lettered,
        loop.progress.skipped,
    )


def test_letter_and_offset_are_one_transaction() -> None:
    """When the commit fails, neither is there."""
    loop = Loop(ScriptedTask(bad(b"{b", 2)), errors=DEAD)
    loop.sender.refuses_late.add(b"{b")

    with pytest.raises(TaskFailedError, match="The broker refuses the record"):
        loop.run()

    assert ([], None, 0) == (sent(loop), loop.position(), loop.progress.dead_lettered)


def test_without_tolerance_a_bad_record_fails_as_it_always_did() -> None:
    """The offset stays before it."""
    loop = Loop(ScriptedTask(batch("a", end=1), bad(b"{b", 2)))

    with pytest.raises(RecordError, match=r"^f, byte 2: It is bad\.$"):
        loop.run()

    assert ([("t", b"a")], 1) == (sent(loop), loop.position())


def test_without_a_topic_it_is_skipped_and_counted() -> None:
    """The offset passes it, with a transaction or without records at all."""
    loop = Loop(ScriptedTask(bad(b"{b", 1), batch("a", end=2), bad(b"{b", 3)), errors=SKIPPED)

    loop.run()

    assert [("t", b"a")] == sent(loop)
    assert (3, 2, 0) == (loop.position(), loop.progress.skipped, loop.progress.dead_lettered)


def test_an_error_that_says_no_offset_is_not_tolerated() -> None:
    """No one could continue after it: the task fails, and the sentence says why."""
    loop = Loop(ScriptedTask(batch("a", end=1), RecordError("It is broken.")), errors=DEAD)

    with pytest.raises(
        TaskFailedError, match=r"It is broken\. errors\.tolerance=all does not apply"
    ):
        loop.run()

    assert ([("t", b"a")], 1) == (sent(loop), loop.position())


def test_a_damaged_object_is_not_tolerated() -> None:
    """What a reader raises when nothing after an error can be read."""
    loop = Loop(ScriptedTask(TaskFailedError("It is cut off.")), errors=SKIPPED)

    with pytest.raises(TaskFailedError, match=r"cut off\. errors\.tolerance=all does not apply"):
        loop.run()


def test_a_task_that_does_not_go_on_is_stopped() -> None:
    """The same error again would make dead letters forever."""
    loop = Loop(ScriptedTask(*[bad(b"b", 2)] * 3), errors=DEAD)

    with pytest.raises(TaskFailedError, match="poll raised the same error again"):
        loop.run()

    assert [("dead", b"b")] == sent(loop)


def test_equal_errors_of_different_records_are_not_the_same() -> None:
    """Their offsets distinguish them."""
    errors = [bad(b"b", position) for position in (1, 2)]
    for each in errors:
        each.args = ("the same words",)
    loop = Loop(ScriptedTask(*errors), errors=DEAD)

    loop.run()

    assert 2 == loop.progress.dead_lettered


def alike(raw: bytes | None, times: int) -> list[RecordError]:
    """*times* errors of a source that knows no offsets, all of the same words."""
    known = BadRecord(source_partition=FILE, source_offset=None, raw=raw)
    return [RecordError("It is bad.", native_key="f", bad=known) for _ in range(times)]


def test_bad_records_without_offset_are_told_apart_by_what_they_hold() -> None:
    """And may even hold the same: nothing says that they are one."""
    loop = Loop(ScriptedTask(*alike(b"a", 2), *alike(b"b", 2)), errors=DEAD)

    loop.run()

    assert [("dead", each) for each in (b"a", b"a", b"b", b"b")] == sent(loop)


def test_a_task_that_does_not_go_on_is_stopped_without_offsets_as_well() -> None:
    """After so many that it will not end by itself."""
    loop = Loop(ScriptedTask(*alike(b"a", 500)), errors=DEAD)

    with pytest.raises(TaskFailedError, match="poll raised the same error again"):
        loop.run()

    assert 101 == loop.progress.dead_lettered


# ------------------------------------------------------------------ what a letter says


def test_headers_tell_what_was_wrong_and_where() -> None:
    """Kafka Connect's, and those of the source."""
    loop = Loop(ScriptedTask(bad(b"{b", 2)), errors=TOLD)

    loop.run()

    found = headers(loop)
    trace = found.pop("__connect.errors.exception.stacktrace")
    assert "RecordError" in trace
    assert {
        "__connect.errors.topic": "t",
        "__connect.errors.connector.name": "c",
        "__connect.errors.task.id": "0",
        "__connect.errors.stage": "TASK_POLL",
        "__connect.errors.class.name": "task.loop.ScriptedTask",
        "__connect.errors.exception.class.name": "headrace.connect.errors.RecordError",
        "__connect.errors.exception.message": "f, byte 2: It is bad.",
        "__connect.errors.source.object": "f",
        "__connect.errors.source.position": "byte 2",
        "__connect.errors.source.partition": '{"filename":"f"}',
        "__connect.errors.source.offset": '{"position":2}',
    } == found


def test_headers_show_no_secret() -> None:
    """What the record holds is the record's; what is said of it is not."""
    passed = SkippedRecord(
        error=bad(b"hunter2", 1, reason="No key hunter2."),
        bad=BadRecord(
            source_partition=FILE, source_offset={"position": 1}, topic="t", raw=b"hunter2"
        ),
        stage="CONVERT",
        class_name="x",
    )
    secrets = Secrets(values={"hunter2": "${env:A}"})
    letters = DeadLetters(topic="dead", context=True, connector="c", task=0, secrets=secrets)
    letter = next(letters.attempts(passed))

    headers = dict((letter.headers or [[]])[0])
    assert b"No key ${env:A}." in (headers[f"{PREFIX}exception.message"] or b"")
    assert b"hunter2" not in b"".join(value or b"" for value in headers.values())
    assert [b"hunter2"] == letter.values.to_pylist()


def test_headers_are_there_only_when_they_are_asked_for() -> None:
    """As in Kafka Connect."""
    loop = Loop(ScriptedTask(bad(b"{b", 2)), errors=DEAD)

    loop.run()

    assert {} == headers(loop)


def test_a_long_reason_does_not_make_the_letter_too_large() -> None:
    """It may quote all of the record."""
    loop = Loop(ScriptedTask(bad(b"{b", 2, reason="x" * 1_000_000)), errors=TOLD)

    loop.run()

    found = headers(loop)
    assert sum(map(len, found.values())) < 50_000
    for name in ("message", "stacktrace"):
        assert found[f"__connect.errors.exception.{name}"].strip().endswith("xxx")


def test_a_long_trace_keeps_its_beginning_and_its_end() -> None:
    """Its last line says what happened."""
    first = ValueError("The first error.")
    first.add_note("It came from here. " * 1000)
    error = bad(b"{b", 2)
    error.__cause__ = first
    loop = Loop(ScriptedTask(error), errors=TOLD)

    loop.run()

    trace = headers(loop)["__connect.errors.exception.stacktrace"]
    assert trace.startswith("ValueError: The first error.\n")
    assert trace.endswith("headrace.connect.errors.RecordError: f, byte 2: It is bad.\n")


def test_a_reason_that_is_no_unicode_text_is_told_all_the_same() -> None:
    """A path's undecodable bytes, for example; the letter must not fail where the record did not."""
    loop = Loop(ScriptedTask(bad(b"{b", 2, reason="It quotes \udc80.")), errors=TOLD)

    loop.run()

    assert [("dead", b"{b")] == sent(loop)
    assert headers(loop)["__connect.errors.exception.message"].endswith(r"It quotes \udc80.")


@pytest.mark.parametrize("raw", [None, b"x" * 301], ids=["no bytes", "too many"])
def test_what_cannot_be_in_a_letter_is_told_by_its_place(raw: bytes | None) -> None:
    """With a null value, also without the other headers."""
    loop = Loop(ScriptedTask(bad(raw, 2)), errors=DEAD)
    loop.sender.most_bytes = 300

    loop.run()

    assert [("dead", None)] == sent(loop)
    (reference,) = headers(loop).items()
    assert "__connect.errors.source.reference" == reference[0]
    assert {
        "object": "f",
        "from": 1,
        "to": 2,
        "sourcePartition": {"filename": "f"},
        "sourceOffset": {"position": 2},
    } == json.loads(reference[1])


@pytest.mark.parametrize(("most", "value"), [(200, b"x" * 190), (180, None)])
def test_a_letter_without_room_for_its_headers_goes_without(most: int, value: bytes | None) -> None:
    """Its content is more important than the headers that describe its error."""
    loop = Loop(ScriptedTask(bad(b"x" * 190, 2)), errors=TOLD)
    loop.sender.most_bytes = most

    loop.run()

    assert [("dead", value)] == sent(loop)
    assert {"__connect.errors.source.reference"} >= set(headers(loop))


def test_a_letter_without_room_for_a_reference_fails_the_task() -> None:
    """It is never left out."""
    loop = Loop(ScriptedTask(bad(b"x" * 100, 2)), errors=TOLD)
    loop.sender.most_bytes = 50

    with pytest.raises(TaskFailedError, match=r"dead letter .* too large"):
        loop.run()

    assert ([], None) == (sent(loop), loop.position())


def test_a_letter_that_is_refused_fails_the_task() -> None:
    """Nothing of its transaction stays, and the message describes the record."""
    loop = Loop(ScriptedTask(batch("a", end=1), bad(b"{b", 2)), errors=DEAD)
    loop.sender.refuses.add(b"{b")
    loop.kind = BoundaryKind.INTERVAL

    with pytest.raises(TaskFailedError, match=r"dead letter .*'dead'.*f, byte 2: It is bad"):
        loop.run()

    assert ([], None) == (sent(loop), loop.position())


@pytest.mark.parametrize("content", [True, False])
def test_the_log_tells_of_each_when_it_should(
    caplog: pytest.LogCaptureFixture, *, content: bool
) -> None:
    """What it holds only if that is asked for."""
    task = ScriptedTask(bad(b"{secret", 2))
    loop = Loop(task, errors=replace(SKIPPED, log=True, log_content=content))

    with caplog.at_level(logging.WARNING, "headrace"):
        loop.run()

    (line,) = caplog.messages
    assert "task c-0" in line
    assert "f, byte 2: It is bad. The record is skipped." in line
    assert content == ("{secret" in line)


# ------------------------------------------------------------------ converting and sending


@given(st.lists(st.sampled_from(["good", LONG, None]), min_size=1, max_size=120))
def test_every_row_is_a_record_or_a_letter(values: list[str | None]) -> None:
    """Whichever rows the converter or the client refuses: in order, once, and the offset after the last."""
    loop = Loop(ScriptedTask(nullable(*values)), errors=TOLD, value_converter="json")
    loop.sender.most_bytes = len(LONG)

    loop.run()

    found = [
        json.loads(value or b"0")["payload"] if topic == "t" else origin(loop, index)
        for index, (topic, value) in enumerate(sent(loop))
    ]
    expected = [value if value == "good" else at for at, value in enumerate(values, 1)]
    assert expected == found
    assert len(values) == loop.position()
    assert values.count("good") == loop.progress.committed_records
    assert len(values) - values.count("good") == loop.progress.dead_lettered


def origin(loop: Loop, index: int) -> object:
    """The position that a letter's headers say."""
    return json.loads(headers(loop, index)["__connect.errors.source.offset"])["position"]


def test_many_bad_rows_cost_little_more_than_few() -> None:
    """A batch is not converted again as a whole for each of them."""
    values = ["good", None] * 2_000
    loop = Loop(ScriptedTask(nullable(*values)), errors=SKIPPED, value_converter="json")
    rows = 0
    pipeline = loop._pipeline()
    inner = pipeline.encoder.encoded

    def counting(each: SourceBatch) -> EncodedRecords:
        nonlocal rows
        rows += len(each)
        return inner(each)

    pipeline.encoder.encoded = counting  # type: ignore[method-assign]
    loop._pipeline = lambda: pipeline  # type: ignore[method-assign]

    loop.run()

    assert 2_000 == loop.progress.skipped
    assert rows < 20 * len(values)


def test_a_row_of_text_that_is_too_large_goes_by_reference_and_keeps_its_neighbours() -> None:
    """The letter says that the producer refused it."""
    loop = Loop(ScriptedTask(batch("a", LONG, "c", end=3)), errors=TOLD)
    loop.sender.most_bytes = len(LONG) - 1

    loop.run()

    assert [("t", b"a"), ("dead", None), ("t", b"c")] == sent(loop)
    assert "KAFKA_PRODUCE" == headers(loop, 1)["__connect.errors.stage"]
    assert 3 == loop.position()


def test_a_row_that_cannot_be_converted_is_told_with_its_bytes_and_its_key() -> None:
    """Here because of a header of it."""
    good, wrong = (Header(key="h", value=1),), (Header(key="h", value={1}),)
    rows = replace(
        batch("a", "b", end=2), headers=[good, wrong], keys=pa.array(["k", "l"], pa.utf8())
    )
    loop = Loop(ScriptedTask(rows), errors=TOLD)

    loop.run()

    assert [("t", b"k", b"a"), ("dead", b"l", b"b")] == loop.sender.committed
    found = headers(loop)
    assert "HEADER_CONVERTER" == found["__connect.errors.stage"]
    assert found["__connect.errors.class.name"].endswith("SimpleHeaderConverter")
    assert found["__connect.errors.exception.message"].startswith("filename f, at source offset")


def test_a_row_that_is_no_text_is_told_as_json() -> None:
    """A converter for strings refuses nothing, so one for bytes is asked here."""
    rows = replace(batch("a", end=1), values=pa.array([7], pa.int64()), value_schema=INT64)
    loop = Loop(ScriptedTask(rows), errors=DEAD, value_converter="bytes")

    loop.run()

    assert [("dead", b"7")] == sent(loop)


@pytest.mark.parametrize(
    ("column", "expected"),
    [
        (pa.array([10**15], pa.timestamp("ms", tz="UTC")), b"1000000000000000"),
        (pa.StringArray.from_buffers(1, *map(pa.py_buffer, (OFFSETS, b"\xff"))), b"\xff"),
        (pa.array([None], pa.utf8()), None),
    ],
    ids=["behind the year 9999", "no UTF-8", "null"],
)
def test_the_bytes_of_a_row_need_no_python_value(column: pa.Array, expected: bytes | None) -> None:
    """There may be none, and a task that fails for that fails again at each start."""
    schema = TIMESTAMP if pa.types.is_timestamp(column.type) else STRING
    rows = replace(batch("a", end=1), values=column, value_schema=schema)

    assert expected == raw_value(rows)


def test_a_client_that_refuses_in_the_middle_is_not_tolerated() -> None:
    """Rows after the refused one may be in its queue."""
    loop = Loop(ScriptedTask(batch("a", "bad", "c", end=3)), errors=DEAD)
    loop.sender.refuses.add(b"bad")

    with pytest.raises(RecordError, match="position 2"):
        loop.run()

    assert ([], None) == (sent(loop), loop.position())


def test_a_broker_that_refuses_late_is_not_tolerated_and_says_what_helps() -> None:
    """The transaction is lost by then."""
    loop = Loop(ScriptedTask(batch("a", "BAD", end=2)), errors=DEAD)
    loop.sender.refuses_late.add(b"BAD")

    with pytest.raises(TaskFailedError, match=r"position 2.*Lower max\.request\.size"):
        loop.run()

    assert ([], None) == (sent(loop), loop.position())


# ------------------------------------------------------------------ plain records and hooks


class TellingTask(ScriptedTask):
    """Wants to know what became of everything."""

    def __init__(self, *script: object) -> None:
        super().__init__(*script)
        self.records: list[tuple[object, bool]] = []
        self.batches: list[int] = []

    def commit_record(self, record: SourceRecord, metadata: RecordMetadata | None) -> None:
        """Note it."""
        self.records.append((record.value, metadata is not None))

    def commit_batch(self, batch: SourceBatch) -> None:
        """Note it."""
        self.batches.append(len(batch))


def test_plain_records_that_fit_no_schema_are_passed_over() -> None:
    """The others are sent, and the author hears of each in order."""
    values: list[object] = [1, "no number", 3, {4}, 5]
    records = [
        replace(record("", at), value=value, value_schema=INT64)
        for at, value in enumerate(values, 1)
    ]
    task = TellingTask(records)
    loop = Loop(task, errors=DEAD, value_converter="json")

    loop.run()

    assert ["t", "dead", "t", "dead", "t"] == [topic for topic, _ in sent(loop)]
    assert [b"no number", None] == [value for topic, value in sent(loop) if topic == "dead"]
    assert 5 == loop.position()
    assert [(1, True), ("no number", False), (3, True), ({4}, False), (5, True)] == task.records


def test_a_task_that_is_told_of_batches_alone_hears_of_plain_records_that_fit_none() -> None:
    """It would never acknowledge them upstream otherwise."""
    reported = list[tuple[list[object], object]]()

    class BatchTellingTask(ScriptedTask):
        def commit_batch(self, batch: SourceBatch) -> None:
            reported.append((batch.values.to_pylist(), batch.offset_at(-1)))

    wrong = replace(record("no number", 2), value_schema=INT64)
    task = BatchTellingTask([record("a", 1), wrong, record("c", 3)])
    Loop(task, errors=DEAD).run()

    assert [
        (["a"], {"position": 1}),
        ([None], {"position": 2}),
        (["c"], {"position": 3}),
    ] == reported


def test_a_record_whose_offset_cannot_be_stored_cannot_be_passed_over() -> None:
    """Nothing would say that it was."""
    wrong = replace(record("b", 2), source_offset={"position": 2**63})
    loop = Loop(ScriptedTask([record("a", 1), wrong, record("c", 3)]), errors=DEAD)

    with pytest.raises(TaskFailedError, match=r"does not fit 64 bits.*does not apply"):
        loop.run()

    assert ([("t", b"a")], 1) == (sent(loop), loop.position())


def test_many_plain_records_are_taken_in_order() -> None:
    """However many of them are bad, and wherever."""
    values: list[object] = ["bad" if at % 3 else at for at in range(1, 200)]
    records = [
        replace(record("", at), value=value, value_schema=INT64)
        for at, value in enumerate(values, 1)
    ]
    loop = Loop(ScriptedTask(records), errors=DEAD, value_converter="json")

    loop.run()

    assert ["dead" if value == "bad" else "t" for value in values] == [
        topic for topic, _ in sent(loop)
    ]
    assert len(values) == loop.position()


def test_a_bad_plain_record_behind_others_is_the_right_one() -> None:
    """Whatever batches the records before it make."""
    fitting = [replace(record("a", at), topic=topic) for at, topic in enumerate("ttu", 1)]
    wrong = replace(record("bad", 4), value_schema=INT64)
    loop = Loop(ScriptedTask([*fitting, wrong, record("b", 5)]), errors=DEAD)

    loop.run()

    assert [("t", b"a"), ("t", b"a"), ("u", b"a"), ("dead", b"bad"), ("t", b"b")] == sent(loop)


def test_hooks_hear_of_rows_that_were_passed_over() -> None:
    """A source that is acknowledged upstream must acknowledge these as well."""
    task = TellingTask(nullable("a", None, "c"))
    loop = Loop(task, errors=SKIPPED, value_converter="json")

    loop.run()

    assert [("a", True), (None, False), ("c", True)] == task.records
    assert [1, 1, 1] == task.batches


# ------------------------------------------------------------------ the ends of transactions


def test_an_abort_drops_letters_and_moves_past_them() -> None:
    """They are part of what the connector throws away."""
    loop = Loop(ScriptedTask(), kind=BoundaryKind.CONNECTOR, errors=DEAD)

    def abort() -> SourceBatch:
        loop.requests.abort_transaction()
        return batch("b", end=2)

    def commit() -> SourceBatch:
        loop.requests.commit_transaction()
        return batch("d", end=4)

    loop.task = ScriptedTask(bad(b"{a", 1), abort, bad(b"{c", 3), commit)
    loop.run()

    assert [("dead", b"{c"), ("t", b"d")] == sent(loop)
    assert (4, 1) == (loop.position(), loop.progress.dead_lettered)


@pytest.mark.parametrize("errors", [DEAD, SKIPPED], ids=["letter", "skipped"])
def test_a_bad_record_waits_for_the_connectors_boundary(errors: ErrorPolicy) -> None:
    """Without one it is thrown away, and read again: the slot has to know."""
    loop = Loop(ScriptedTask(bad(b"{a", 1)), kind=BoundaryKind.CONNECTOR, errors=errors)

    loop.run()

    assert ([], None, True) == (sent(loop), loop.position(), loop.left_open)


def test_an_end_waits_for_the_boundary_behind_a_letter() -> None:
    """As it does after a record."""
    loop = Loop(ScriptedTask(), kind=BoundaryKind.CONNECTOR, errors=DEAD)

    def asked() -> RecordError:
        loop.lease.asked_to_end = EndReason.STOP
        return bad(b"{a", 1)

    def commit() -> SourceBatch:
        loop.requests.commit_transaction()
        return batch("b", end=2)

    loop.task = ScriptedTask(asked, commit, batch("c", end=3))
    loop.run()

    assert [("dead", b"{a"), ("t", b"b")] == sent(loop)


def test_a_row_is_not_blamed_twice() -> None:
    """It was handed over once, however often that was tried."""
    loop = Loop(ScriptedTask(batch("BB", "x" * 30, end=2)), errors=SKIPPED)
    loop.sender.most_bytes = 20
    loop.sender.refuses_late.add(b"BB")
    loop.kind = BoundaryKind.INTERVAL

    with pytest.raises(TaskFailedError, match=r"at source offset position 1"):
        loop.run()


def test_a_boundary_of_a_bad_plain_record_counts() -> None:
    """The request for its commit is not lost with it."""
    loop = Loop(ScriptedTask(), kind=BoundaryKind.CONNECTOR, errors=DEAD, value_converter="json")
    wrong = replace(record("no number", 1), value_schema=INT64)
    after = replace(record("", 2), value=2, value_schema=INT64)

    def poll() -> list[SourceRecord]:
        loop.requests.commit_transaction(wrong)
        return [wrong, after]

    loop.task = ScriptedTask(poll)
    loop.run()

    assert ([("dead", b"no number")], 1) == (sent(loop), loop.position())
