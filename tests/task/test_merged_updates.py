"""What ``update_offsets`` may return, and what is committed then: in both modes, planned and polled (KIP-910)."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.connect.errors import TaskFailedError
from headrace.connect.partition import SourceOffset, SourcePartition
from headrace.connect.task import Offsets
from headrace.offsets.codec import encoded_key
from headrace.task.connector_spec import BoundaryKind
from headrace.task.offset_updates import changed, checked_update, read_only
from task.loop import FILE, Loop, ScriptedTask, batch

OTHER = SourcePartition(filename="g")
Update = Callable[[Offsets], Offsets | None]

every_mode = pytest.mark.parametrize("transactional", [True, False], ids=["exactly", "at-least"])
every_kind = pytest.mark.parametrize("planned", [True, False], ids=["planned", "polled"])


def loop_of(task: ScriptedTask, *, transactional: bool, planned: bool) -> Loop:
    """The mode's own default boundary; a polled slot is asked to stop when the script is over."""
    loop = Loop(task, kind=BoundaryKind.INTERVAL, transactional=transactional, planned=planned)

    def stop() -> None:
        loop.lease.asked_to_end = "stop"

    task.script.append(stop)
    return loop


def stored(loop: Loop) -> dict[SourcePartition, Any]:
    """What is in the offsets topic; ``None`` for a tombstone."""
    names = {encoded_key("c", each): each for each in (FILE, OTHER)}
    return {
        names[key]: None if value is None else json.loads(value)
        for key, value in loop.sender.offsets.items()
    }


@every_mode
@every_kind
@pytest.mark.parametrize(
    ("update", "committed"),
    [
        (lambda _: None, {FILE: {"position": 1}}),
        (lambda _: {}, {FILE: {"position": 1}}),
        (lambda _: {OTHER: {"at": 7}}, {FILE: {"position": 1}, OTHER: {"at": 7}}),
        (lambda _: {OTHER: None}, {FILE: {"position": 1}, OTHER: None}),
        (lambda _: {FILE: {"position": 9}}, {FILE: {"position": 9}}),
        (lambda _: {FILE: None}, {FILE: None}),
        (lambda _: {FILE: None, OTHER: {"at": 7}}, {FILE: None, OTHER: {"at": 7}}),
        (lambda offsets: offsets, {FILE: {"position": 1}}),
    ],
    ids=["null", "empty", "added", "added-tombstone", "replaced", "tombstone", "several", "same"],
)
def test_the_result_is_merged_into_the_commit(
    update: Update, committed: dict[SourcePartition, Any], *, transactional: bool, planned: bool
) -> None:
    """Added, replaced or removed; what is left out is committed as it was."""
    task = ScriptedTask(batch("a", end=1))
    task.update = update
    loop = loop_of(task, transactional=transactional, planned=planned)

    loop.run()

    assert (committed, ["a"]) == (stored(loop), loop.values())


@every_mode
@every_kind
@pytest.mark.parametrize("offset", [{"position": 9}, None], ids=["offset", "tombstone"])
def test_offsets_are_committed_alone(
    offset: SourceOffset | None, *, transactional: bool, planned: bool
) -> None:
    """At a stop before the first record; with exactly-once in a transaction of their own."""
    task = ScriptedTask()
    task.update = lambda _: {FILE: offset}
    loop = loop_of(task, transactional=transactional, planned=planned)

    loop.run()

    assert ({FILE: offset}, int(transactional)) == (stored(loop), loop.sender.commits)


@every_mode
@every_kind
@pytest.mark.parametrize(
    "result",
    [7, "a", [FILE], {"a": {}}, {FILE: 7}, {FILE: {"at": object()}}, {FILE: {"at": "\ud800"}}],
    ids=["number", "text", "list", "key", "offset", "value", "surrogate"],
)
def test_a_result_of_wrong_shape_is_an_error_of_the_hook(
    result: object, *, transactional: bool, planned: bool
) -> None:
    """It fails a task that is exactly-once; otherwise the offsets of the records are committed."""
    task = ScriptedTask(batch("a", end=1))
    task.update = lambda _: cast("Offsets", result)
    loop = loop_of(task, transactional=transactional, planned=planned)

    if transactional:
        with pytest.raises(TaskFailedError, match="update_offsets returned"):
            loop.run()
        assert ([], {}) == (loop.values(), stored(loop))
    else:
        loop.run()
        assert (["a"], {FILE: {"position": 1}}) == (loop.values(), stored(loop))


@every_mode
@every_kind
@pytest.mark.parametrize("inner", [True, False], ids=["offset", "partition"])
def test_the_argument_cannot_be_changed(*, inner: bool, transactional: bool, planned: bool) -> None:
    """Neither which partitions there are, nor the offset of one."""
    failures = list[str]()

    def attempt(offsets: dict[Any, Any]) -> None:
        try:
            (offsets[FILE] if inner else offsets)["position" if inner else FILE] = 9
        except TypeError as error:
            failures.append(str(error))

    task = ScriptedTask(batch("a", end=1))
    task.update = cast("Update", attempt)
    loop = loop_of(task, transactional=transactional, planned=planned)
    loop.run()

    assert (1, 1) == (len(failures), loop.position())


def test_the_offsets_of_an_aborted_batch_are_merged_as_those_of_any_other() -> None:
    """They are committed in a transaction of their own, of which the task is asked, too."""
    task = ScriptedTask()
    loop = Loop(task, kind=BoundaryKind.CONNECTOR)
    task.update = lambda _: {OTHER: {"at": 7}}
    task.script = [lambda: loop.requests.abort_transaction() or batch("a", end=1)]
    loop.run()

    assert ([], {FILE: {"position": 1}, OTHER: {"at": 7}}) == (loop.values(), stored(loop))


@pytest.mark.parametrize("requests", [True, False])
def test_a_connector_that_places_transactions_moves_offsets_when_it_asks_for_one(
    *, requests: bool
) -> None:
    """Records or not; and otherwise it is not asked at all."""
    task = ScriptedTask()
    loop = Loop(task, kind=BoundaryKind.CONNECTOR)
    task.update = lambda _: {FILE: {"position": 9}}
    task.script = [lambda: loop.requests.commit_transaction() if requests else None]
    loop.run()

    assert ([{}], 9) == (task.shown, loop.position()) if requests else [] == task.shown


# ------------------------------------------------------------------ any offsets

PARTITIONS = st.sampled_from([SourcePartition(filename=name) for name in "abc"])
VALUES = st.none() | st.booleans() | st.integers(-3, 3) | st.floats() | st.text("aé", max_size=2)
OFFSETS = st.dictionaries(
    PARTITIONS,
    st.none() | st.dictionaries(st.sampled_from("xy"), VALUES),
)


@given(update=OFFSETS, before=OFFSETS)
def test_what_is_left_out_of_an_update_changes_nothing(update: Offsets, before: Offsets) -> None:
    """Only partitions of the update, with its offsets; and a second time there is nothing to do."""
    moved = changed(update, before)

    assert all(moved[each] is update[each] for each in moved)
    assert {} == changed(update, {**before, **moved})
    assert update.keys() - moved.keys() <= before.keys()


@given(offsets=OFFSETS)
def test_an_update_that_returns_its_argument_is_the_argument(offsets: Offsets) -> None:
    """What is read-only may be returned: it comes out equal, and is no change."""
    update = checked_update(read_only(offsets))

    assert offsets == update
    assert {} == changed(update, offsets)
