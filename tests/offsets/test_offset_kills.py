"""A worker that is killed at any point of a change has made it, or has not, once it has recovered."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from headrace.connect.errors import ConfigError, RetriableError
from headrace.connect.task import Offsets
from headrace.herder.errors import ServerError
from headrace.offsets.administration import OffsetChanges
from headrace.offsets.alteration import Settlement, settlement
from headrace.storage.memory import MemoryOffsetStore
from headrace.storage.protocols import (
    HistoryEntry,
    Intent,
    Operation,
    Phase,
    Retention,
)
from headrace.storage.sqlite import SqliteStorage
from offsets.changing import STORED, A, B, KilledError, Stage, change, memory_stage

BEFORE = {A: {"position": 1}, B: {"position": 5}}
AFTER = {A: {"position": 2}}
CHANGES = [change({"filename": "a"}, {"position": 2}), change({"filename": "b"}, None)]
Make = Callable[[OffsetChanges, Stage], object]


def altering(changes: OffsetChanges, stage: Stage) -> object:
    """Both partitions change."""
    return changes.alter(stage.spec, CHANGES, who=None)


def creating(changes: OffsetChanges, stage: Stage) -> object:
    """One is wiped, one is preset."""
    return changes.create(stage.spec, STORED, CHANGES[:1], who=None)


MEMORY, TOPIC, FILE = "memory", "topic and file", "file"
# Where the offsets are in the same file as their changes, no one is fenced, and all is one transaction.
POINTS = [
    *((kind, at, False) for kind in (MEMORY, TOPIC) for at in ("fence 2", "before commit")),
    *((kind, at, True) for kind in (MEMORY, TOPIC) for at in ("after commit", "before finish")),
    *(
        (kind, at, False)
        for kind in (MEMORY, TOPIC, FILE)
        for at in ("before begin", "after begin")
    ),
    *((kind, "after finish", True) for kind in (MEMORY, TOPIC, FILE)),
    (FILE, "before finish", False),
]


@pytest.fixture(params=[MEMORY, TOPIC, FILE])
def stage(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Stage]:
    """Where offsets and their changes are kept."""
    if request.param == MEMORY:
        stage, storage = memory_stage(), None
    else:
        storage = SqliteStorage(tmp_path / "state.db")
        local = request.param == FILE
        stage = Stage(
            changes_store=storage.changes,
            offsets=storage.offsets if local else MemoryOffsetStore(),
            configs=storage.configs,
            local=local,
            exactly_once=not local,
        )
    stage.put(BEFORE)
    yield stage
    if storage is not None:
        storage.close()


@pytest.mark.parametrize("make", [altering, creating])
@pytest.mark.parametrize(("stage", "at", "is_done"), POINTS, indirect=["stage"])
def test_a_kill_leaves_the_old_state_or_the_new_one(
    stage: Stage, make: Make, at: str, *, is_done: bool
):
    """Offsets, configuration and history say the same."""
    if make is altering:
        stage.configs.put_connector(STORED)
    stage.faults.at = at
    with pytest.raises(KilledError):
        make(stage.changes(), stage)

    changes = stage.restarted()

    assert (AFTER if is_done else BEFORE) == stage.known()
    assert [is_done] * len(changes.history("c")) == [each.done for each in changes.history("c")]
    expected = {"c": STORED} if is_done or make is altering else {}
    assert expected == stage.configs.connectors()


@pytest.mark.parametrize("make", [altering, creating])
@pytest.mark.parametrize("at", ["before move", "after move", "before abandon"])
@pytest.mark.parametrize(
    ("stage", "failing"),
    [
        *((kind, at) for kind in (MEMORY, TOPIC) for at in ("before commit", "before finish")),
        (FILE, "before finish"),
    ],
    indirect=["stage"],
)
def test_a_kill_while_a_failure_is_taken_back_loses_nothing(
    stage: Stage, make: Make, at: str, failing: str
):
    """The change failed and the process died over it: no offsets between old and new, and no half connector."""
    if make is altering:
        stage.configs.put_connector(STORED)
    errors = iter([(failing, RetriableError("away")), (at, KilledError())])
    stage.faults.at, error = next(errors)

    def next_error() -> BaseException:
        nonlocal error
        raised, (stage.faults.at, error) = error, next(errors, (None, error))
        return raised

    stage.faults.error = next_error
    with pytest.raises(KilledError):
        make(stage.changes(), stage)

    stage.restarted()

    is_done = at == "before move" and failing == "before finish" and not stage.local
    is_wiped = make is creating and failing == "before finish" and not stage.local
    expected: Offsets = AFTER if is_done else {} if is_wiped else BEFORE
    assert expected == stage.known()
    assert (make is altering or is_done) == ("c" in stage.configs.connectors())


@pytest.mark.parametrize("arriving", [0, 1, 2])
@pytest.mark.parametrize("make", [altering, creating])
def test_a_part_of_a_change_is_taken_back(make: Make, arriving: int):
    """Without transactions a killed writer leaves a part of it; all of it is the change itself."""
    stage = memory_stage()
    stage.exactly_once = False
    stage.put(BEFORE)
    if make is altering:
        stage.configs.put_connector(STORED)
    stage.arriving = arriving
    with pytest.raises(KilledError):
        make(stage.changes(), stage)

    stage.restarted()

    is_done = arriving == 2
    assert (AFTER if is_done else BEFORE) == stage.known()
    assert (make is altering or is_done) == ("c" in stage.configs.connectors())


def half_done() -> Stage:
    """The broker was away for a change, of which a part arrived, and for taking it back."""
    stage = memory_stage()
    stage.put(BEFORE)
    stage.arriving = 1
    stage.exactly_once = False

    def away() -> BaseException:
        stage.arriving = 0
        return RetriableError("away")

    stage.faults.error = away
    with pytest.raises(ServerError):
        altering(stage.changes(), stage)
    assert {A: {"position": 2}, B: {"position": 5}} == stage.known()
    return stage


def test_what_could_not_be_taken_back_is_settled_by_the_next_change():
    """Its "before" is what was before the failed one."""
    stage = half_done()
    stage.arriving = None

    stage.changes().alter(stage.spec, [change(A, {"position": 3})], who=None)

    assert {A: {"position": 3}, B: {"position": 5}} == stage.known()
    assert list(stage.changes_store.open_intents()) == []
    assert {A: {"position": 1}} == stage.changes().history("c")[0].before


def test_what_could_not_be_taken_back_is_settled_before_a_start():
    """A broker that is still away is something to try again."""
    stage = half_done()
    with pytest.raises(RetriableError, match=r"Timed out .* connector c: away"):
        stage.changes().settle(stage.spec)
    stage.arriving = None
    stage.changes().settle(stage.spec)

    assert stage.known() == BEFORE
    stage.changes().settle(stage.spec)
    assert list(stage.changes_store.open_intents()) == []


def test_a_connector_that_cannot_be_settled_is_reported_and_harms_no_other():
    """It must not start: its offsets may be anything."""
    stage = memory_stage()
    for name in ("broken", "gone"):
        stage.changes_store.begin(_intent(Phase.WRITING, name), Retention())
    stage.changes_store.begin(_intent(Phase.WRITING), Retention())
    stage.configs.put_connector(STORED)
    problem = ConfigError([("a", "b")])

    def run_spec(stored: object) -> object:
        if stored == STORED:
            return stage.spec
        raise problem

    broken = type(STORED)(name="broken", config={})
    stage.configs.put_connector(broken)
    failures = stage.changes().recover(stage.configs.connectors(), run_spec)  # pyright: ignore[reportArgumentType]

    assert {"broken", "gone"} == failures.keys()
    assert failures["broken"] is problem
    assert ["broken", "gone"] == [
        each.entry.connector for each in stage.changes_store.open_intents()
    ]


def test_a_creation_whose_name_is_anothers_is_taken_back():
    """It could not be finished when the worker started, and somebody has created the connector since."""
    stage = memory_stage()
    stage.put(BEFORE)
    stage.faults.at = "after commit"
    with pytest.raises(KilledError):
        creating(stage.changes(), stage)
    other = replace(STORED, config={"name": "c", "other": "yes"})
    stage.configs.put_connector(other)

    stage.changes().settle(stage.spec)

    assert stage.known() == BEFORE
    assert {"c": other} == stage.configs.connectors()
    assert [False] == [each.done for each in stage.changes().history("c")]


def test_recovery_does_not_replace_a_connector():
    """As above, when the worker was started once more in between."""
    stage = memory_stage()
    stage.put(BEFORE)
    stage.faults.at = "after commit"
    with pytest.raises(KilledError):
        creating(stage.changes(), stage)
    other = replace(STORED, config={"name": "c", "other": "yes"})
    stage.configs.put_connector(other)

    stage.restarted()

    assert stage.known() == BEFORE
    assert {"c": other} == stage.configs.connectors()


def _intent(phase: Phase, connector: str = "c") -> Intent:
    entry = HistoryEntry(
        connector=connector,
        operation=Operation.CREATE,
        who=None,
        at_ms=0,
        before={A: {"position": 1}, B: None},
        after={A: {"position": 2}, B: {"position": 1}},
    )
    return Intent(entry=entry, phase=phase)


@pytest.mark.parametrize(
    ("phase", "known", "expected"),
    [
        (Phase.WRITING, {A: {"position": 2}, B: {"position": 1}}, Settlement(is_done=True)),
        (Phase.WRITING, {A: {"position": 1}}, Settlement(is_done=False)),
        (
            Phase.WRITING,
            {A: {"position": 2}},
            Settlement(is_done=False, write={A: {"position": 1}}),
        ),
        (
            Phase.WRITING,
            {A: {"position": 2}, B: {"position": True}},
            Settlement(is_done=False, write={A: {"position": 1}}),
        ),
        (
            Phase.UNDOING,
            {A: {"position": 2}, B: {"position": 1}},
            Settlement(is_done=False, write={A: {"position": 1}, B: None}),
        ),
        (Phase.UNDOING, {A: {"position": 1}}, Settlement(is_done=False)),
        (
            Phase.WIPING,
            {A: {"position": 2}, B: {"position": 1}},
            Settlement(is_done=False, write={A: None, B: None}),
        ),
        (Phase.WIPING, {}, Settlement(is_done=False)),
    ],
)
def test_what_the_store_shows_decides(phase: Phase, known: Offsets, expected: Settlement):
    """Done when it shows all of the change; else what it still shows of it goes back, and nothing that came since."""
    assert expected == settlement(_intent(phase), known)  # pyright: ignore[reportArgumentType]
