"""Bad records that fail their task: what is logged about them, and what is counted (KIP-298)."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import replace

import pyarrow as pa
import pytest

from headrace.connect.errors import ConnectError, RecordError, TaskFailedError
from headrace.connect.record import BadRecord, SourceRecord
from headrace.connect.schema import INT64
from headrace.task.chain import Stage
from headrace.task.connector_spec import ErrorPolicy
from task.loop import FILE, Loop, ScriptedTask, batch

LOGGED = ErrorPolicy(log=True, log_content=True)


class Refusing:
    """A transformation that refuses one text."""

    def configure(self, config: object) -> None:
        """Nothing to configure."""

    def apply(self, record: SourceRecord) -> SourceRecord:
        """Any other text as it is."""
        if record.value == "bad":
            raise RecordError("It is bad.")
        return record


def unread() -> Loop:
    """The task cannot read it."""
    bad = BadRecord(source_partition=FILE, source_offset={"position": 1}, topic="t", raw=b"bad")
    return Loop(ScriptedTask(RecordError("It is bad.", native_key="f", bad=bad)))


def untransformed() -> Loop:
    """A transformation refuses it."""
    return Loop(ScriptedTask(batch("a", "bad", end=2)), stages=[Stage(transform=Refusing())])


def unconverted() -> Loop:
    """A converter refuses it."""
    rows = replace(batch("a", "b", end=2), values=pa.array([1, 2]), value_schema=INT64)
    return Loop(ScriptedTask(rows), value_converter="bytes")


def unsent() -> Loop:
    """The client refuses it before it is sent."""
    loop = Loop(ScriptedTask(batch("a", "bad", end=2)))
    loop.sender.most_bytes = 2
    return loop


def refused() -> Loop:
    """The client refuses it among others."""
    loop = Loop(ScriptedTask(batch("a", "bad", end=2)))
    loop.sender.refuses.add(b"bad")
    return loop


def refused_late() -> Loop:
    """The broker refuses it; only its sizes are known by then."""
    loop = Loop(ScriptedTask(batch("a", "bad", end=2)))
    loop.sender.refuses_late.add(b"bad")
    return loop


def failed(loop: Loop, errors: ErrorPolicy, caplog: pytest.LogCaptureFixture) -> list[str]:
    """The warnings of *loop*, which fails."""
    loop.errors = errors
    with caplog.at_level(logging.WARNING, "headrace"), pytest.raises(ConnectError):
        loop.run()
    return caplog.messages


@pytest.mark.parametrize(
    ("make", "stage", "by", "held"),
    [
        (unread, "TASK_POLL", "ScriptedTask", "b'bad'"),
        (untransformed, "TRANSFORMATION", "Refusing", "b'bad'"),
        (unconverted, "VALUE_CONVERTER", "BytesConverter", "b'1'"),
        (unsent, "KAFKA_PRODUCE", "MemorySender", "b'bad'"),
        (refused, "KAFKA_PRODUCE", "MemorySender", "b'bad'"),
        (refused_late, "KAFKA_PRODUCE", "MemorySender", None),
    ],
)
def test_what_fails_the_task_is_told_with_its_stage(
    make: Callable[[], Loop],
    stage: str,
    by: str,
    held: str | None,
    *,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """With errors.log.enable, as in Kafka Connect; what it holds where that is known."""
    (line,) = failed(make(), LOGGED, caplog)

    assert f"Error encountered in task c-0. Executing stage '{stage}' with class '" in line
    assert f"{by}'. " in line
    assert line.endswith("It fails the task." + (f" The record holds {held}." if held else ""))


@pytest.mark.parametrize("make", [unread, untransformed, unconverted, unsent, refused_late])
def test_nothing_is_told_that_is_not_asked_for(
    make: Callable[[], Loop], caplog: pytest.LogCaptureFixture
) -> None:
    """It is counted all the same."""
    loop = make()

    assert [] == failed(loop, ErrorPolicy(), caplog)
    assert (1, 0) == (loop.progress.record_errors, loop.progress.errors_logged)


def test_the_content_is_told_only_if_it_is_asked_for(caplog: pytest.LogCaptureFixture) -> None:
    """It may be what no one else should read."""
    (line,) = failed(untransformed(), replace(LOGGED, log_content=False), caplog)

    assert "holds" not in line


def test_a_letter_that_cannot_be_written_is_counted() -> None:
    """With the record that it is about."""
    errors = ErrorPolicy(tolerate=True, dead_letters="dead")
    loop = Loop(ScriptedTask(batch("long", "a", end=2)), errors=errors)
    loop.sender.most_bytes = 3

    with pytest.raises(TaskFailedError, match="dead letter"):
        loop.run()

    assert (1, 1) == (loop.progress.record_errors, loop.progress.dead_letters_failed)


def test_what_is_passed_over_is_counted_and_logged() -> None:
    """Each once."""
    policy = ErrorPolicy(tolerate=True, log=True)
    loop = Loop(ScriptedTask(batch("long", "a", "longer", end=3)), errors=policy)
    loop.sender.most_bytes = 3

    loop.run()

    assert (2, 2, 2) == (
        loop.progress.record_errors,
        loop.progress.errors_logged,
        loop.progress.skipped,
    )
