"""Records of one poll that have one source offset: what several records are made of is read whole, or not at all."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pyarrow as pa
import pytest

from headrace.connect.errors import RecordError
from headrace.connect.record import SourceRecord
from headrace.connect.schema import STRING
from headrace.task.chain import Stage
from headrace.task.connector_spec import BoundaryKind
from task.loop import Loop, ScriptedTask, batch, both_modes, record

PAIR = [record("a", 1), replace(record("a, too", 1), topic="u")]
BAD = replace(record("bad", 1), topic="u")


class Refusing:
    """A transformation that cannot change what is bad, and drops what is gone."""

    def apply(self, record: SourceRecord) -> SourceRecord | None:
        """All else as it is."""
        if record.value == "bad":
            raise RecordError("It is bad.")
        return None if record.value == "gone" else record


def always_due(*script: object, transactional: bool, stages: Sequence[Stage] = ()) -> Loop:
    """A commit is due wherever one may be."""
    return Loop(
        ScriptedTask(*script),
        kind=BoundaryKind.INTERVAL,
        interval=0.0,
        transactional=transactional,
        stages=stages,
    )


@both_modes
def test_records_of_one_offset_are_committed_together(*, transactional: bool) -> None:
    """A commit between them says that the second has been read, when it is not in Kafka yet."""
    loop = always_due([*PAIR, record("bad", 2)], transactional=transactional)
    loop.sender.refuses.add(b"a, too")

    with pytest.raises(RecordError):
        loop.run()

    assert loop.position() is None


def test_a_commit_between_records_comes_where_the_offset_moves() -> None:
    """After the pair, in the middle of the poll."""
    loop = always_due([*PAIR, record("b", 2)], transactional=True)

    loop.run()

    assert 2 == loop.sender.commits


@both_modes
def test_what_shares_its_offset_with_what_fits_no_schema_is_read_again(
    *, transactional: bool
) -> None:
    """The offset would say of the record that fails that it has been read; no one would see it again."""
    failing = replace(BAD, value=3, value_schema=STRING)
    loop = always_due([PAIR[0], failing], transactional=transactional)

    with pytest.raises(RecordError, match=r"source offset position 1"):
        loop.run()

    assert loop.position() is None


@both_modes
def test_what_shares_its_offset_with_what_cannot_be_converted_is_read_again(
    *, transactional: bool
) -> None:
    """Also when it is in a batch of its own."""
    failing = replace(batch("bad", end=1), values=pa.array([None], pa.utf8()), value_schema=STRING)
    loop = always_due([batch("a", end=1), failing], transactional=transactional)
    loop.value_converter = "json"

    with pytest.raises(RecordError, match="null value"):
        loop.run()

    assert loop.position() is None


@both_modes
def test_what_shares_its_offset_with_what_cannot_be_transformed_is_read_again(
    *, transactional: bool
) -> None:
    """Wherever on the way it fails."""
    stage = Stage(transform=Refusing())  # type: ignore[arg-type]
    loop = always_due([PAIR[0], BAD], transactional=transactional, stages=[stage])

    with pytest.raises(RecordError, match="It is bad"):
        loop.run()

    assert loop.position() is None


@both_modes
def test_what_is_dropped_between_records_of_one_offset_lets_no_commit_in(
    *, transactional: bool
) -> None:
    """The last of them is still to be sent."""
    stage = Stage(transform=Refusing())  # type: ignore[arg-type]
    polled = [record("a", 1), record("gone", 1), replace(record("c", 1), topic="u")]
    loop = always_due(polled, transactional=transactional, stages=[stage])
    loop.sender.refuses.add(b"c")

    with pytest.raises(RecordError):
        loop.run()

    assert loop.position() is None
