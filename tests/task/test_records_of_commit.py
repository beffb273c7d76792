"""Records that a task adds to a commit, once it is known where its own have landed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import pyarrow as pa
import pytest

from doubles.copied_positions import GROUP, copied, encoded
from headrace.connect.batch import BatchOffsets, SourceBatch
from headrace.connect.encoded import CopiedRun
from headrace.connect.errors import TaskFailedError
from headrace.connect.record import BytesRecord
from headrace.task.connector_spec import BoundaryKind
from headrace.task.poll_loop import MOST_BYTES
from task.loop import Loop, ScriptedTask, both_modes

TARGET = ("a.t", 0)


class Noting(ScriptedTask):
    """Writes down where each run is, as text."""

    def __init__(self, *script: object) -> None:
        super().__init__(*script)
        self.told: list[list[CopiedRun]] = []

    def records_of_commit(self, copied: Sequence[CopiedRun]) -> Iterable[BytesRecord]:
        """One for each run."""
        self.told.append([*copied])
        return [
            BytesRecord("notes", 0, b"k", b"%d+%d" % (each.first, each.records)) for each in copied
        ]


def looped(task: ScriptedTask, *, transactional: bool = True, **settings: object) -> Loop:
    """A loop that takes encoded batches and commits to the group."""
    given = {"takes_encoded": True, **settings}
    return Loop(task, group=GROUP, transactional=transactional, interval=0.0, **given)  # type: ignore[arg-type]


def notes(loop: Loop) -> list[bytes | None]:
    """What was added."""
    return [value for topic, _, value in loop.sender.committed if topic == "notes"]


@both_modes
def test_they_are_written_with_what_they_speak_of(*, transactional: bool) -> None:
    """Each commit has its own; one without records has none."""
    task = Noting(encoded(3, 2), [], encoded(first=7), encoded(4, first=7))
    loop = looped(task, transactional=transactional)

    loop.run()

    assert [b"0+3", b"3+2", b"7+4"] == notes(loop)
    assert [
        [CopiedRun(copied(), TARGET, 0, 0, 3), CopiedRun(copied(), TARGET, 3, 3, 2)],
        [CopiedRun(copied(), TARGET, 7, 0, 4)],
    ] == task.told
    assert 4 == sum(each.records for each in loop.sender.forwarded[1:])


def test_a_commit_in_the_middle_of_a_poll_has_them_too() -> None:
    """For what it commits."""
    task = Noting(encoded(3, 2, 1, nbytes=MOST_BYTES // 2))
    loop = looped(task, kind=BoundaryKind.INTERVAL)

    loop.run()

    assert [[3, 2], [1]] == [[run.records for run in told] for told in task.told]
    assert 2 == loop.sender.commits


def test_decoded_records_are_known_by_their_offsets() -> None:
    """Where source offsets have one column."""
    rows = SourceBatch(
        topic="a.t",
        partition=0,
        values=pa.array(["x", "y"]),
        source_partition=copied(),
        offsets=BatchOffsets(
            constant={"id": "i"}, columns={"offset": pa.array([4, 9], pa.int64())}
        ),
    )
    task = Noting(rows)
    looped(task, takes_encoded=False).run()

    assert [[(4, 0), (9, 1)]] == [
        [(run.first, run.target_first) for run in told] for told in task.told
    ]


def test_a_failure_is_the_task_s_and_nothing_is_committed() -> None:
    """Records would be there that nothing speaks of."""

    class Failing(Noting):
        def records_of_commit(self, copied: Sequence[CopiedRun]) -> Iterable[BytesRecord]:
            raise TaskFailedError("no")

    loop = looped(Failing(encoded(3)))
    with pytest.raises(TaskFailedError, match="no"):
        loop.run()
    assert ([], {}) == (loop.sender.forwarded, loop.sender.groups)


def test_a_refused_one_is_no_error_of_a_record_that_was_read() -> None:
    """So it is not tolerated."""
    loop = looped(Noting(encoded(3)))
    loop.sender.most_bytes = 1
    with pytest.raises(TaskFailedError, match="What the task adds to a commit"):
        loop.run()
