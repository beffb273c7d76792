"""A converter that cannot convert now, such as one whose schema registry is away (KIP-298)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from headrace.connect.errors import RecordError, RetriableError
from headrace.connect.schema import Schema
from headrace.task.connector_spec import BoundaryKind, ErrorPolicy
from task.loop import Loop, ScriptedTask, batch


@dataclass
class RegistryAway:
    """Converts text that is not *stuck*, and that only after so many *failures*."""

    failures: int = 0
    stuck: str | None = None

    def configure(self, config: Mapping[str, str], *, is_key: bool) -> None:
        """Nothing to configure."""

    def encode(self, topic: str, schema: Schema | None, values: pa.Array) -> pa.BinaryArray:
        """The text's bytes, in the end."""
        if self.failures or self.stuck in values.to_pylist():
            self.failures -= bool(self.failures)
            raise RetriableError("The registry is away.")
        return pc.cast(values, pa.binary())


def loop(converter: RegistryAway, errors: ErrorPolicy) -> Loop:
    """Three rows, of which the first two are a poll."""
    task = ScriptedTask(batch("a", "b", end=2), batch("c", end=3))
    return Loop(task, converter=converter, errors=errors, kind=BoundaryKind.POLL)


def test_a_conversion_is_tried_again() -> None:
    """For as long as errors.retry.timeout allows; each row is there once."""
    running = loop(RegistryAway(failures=3), ErrorPolicy(retry_seconds=None))

    running.run()

    assert (["a", "b", "c"], 3) == (running.values(), running.position())
    assert 3 == running.progress.retries


def test_without_a_retry_timeout_the_work_is_planned_again() -> None:
    """Nothing is passed over for what may pass, also with tolerance."""
    running = loop(RegistryAway(failures=1), ErrorPolicy(tolerate=True))

    with pytest.raises(RetriableError):
        running.run()

    assert ([], None) == (running.values(), running.position())


def test_what_is_never_converted_fails_the_task_where_it_is() -> None:
    """After what came before it."""
    running = loop(RegistryAway(stuck="c"), ErrorPolicy(retry_seconds=5.0))

    with pytest.raises(
        RecordError, match=r"source offset position 3: .*away.* after 5 s \(errors.retry.timeout"
    ):
        running.run()

    assert (["a", "b"], 2) == (running.values(), running.position())


def test_what_is_never_converted_is_passed_over() -> None:
    """Alone, however many rows are converted with it."""
    running = loop(
        RegistryAway(stuck="a"),
        ErrorPolicy(retry_seconds=5.0, tolerate=True, dead_letters="dead", headers=True),
    )

    running.run()

    assert [("dead", b"a"), ("t", b"b"), ("t", b"c")] == [
        (topic, value) for topic, _, value in running.sender.committed
    ]
    stages = [dict(each)["__connect.errors.stage"] for each in running.sender.headers if each]
    assert ([b"VALUE_CONVERTER"], 3) == (stages, running.position())


def seen_while_waiting(*, shared_offset: bool) -> tuple[list[str], int | None]:
    """What is committed when the second of two rows is tried again for the first time."""
    running = Loop(
        ScriptedTask([batch("a", end=1), batch("b", end=1 if shared_offset else 2)]),
        converter=RegistryAway(stuck="b"),
        errors=ErrorPolicy(retry_seconds=5.0),
        kind=BoundaryKind.INTERVAL,
        interval=0.0,
    )
    seen = list[tuple[list[str], int | None]]()
    running.lease.meanwhile = lambda: seen.append((running.values(), running.position()))

    with pytest.raises(RecordError):
        running.run()
    return seen[0]


def test_what_is_written_is_committed_while_the_next_rows_wait() -> None:
    """A transaction that stayed open would time out, and all would be read again, forever."""
    assert (["a"], 1) == seen_while_waiting(shared_offset=False)


def test_nothing_is_committed_meanwhile_that_would_pass_the_waiting_rows() -> None:
    """Where the offset of what is written is that of the next row as well."""
    assert ([], None) == seen_while_waiting(shared_offset=True)
