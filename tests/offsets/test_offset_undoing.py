"""Changes of offsets that cannot be undone are refused, each with its own reason."""

from __future__ import annotations

import pytest

from headrace.connect.errors import OffsetsError, RetriableError
from headrace.herder.errors import BadRequestError, ServerError
from offsets.changing import STORED, A, B, Stage, change, memory_stage


@pytest.fixture
def stage() -> Stage:
    """A connector that is stored, with offsets for two files."""
    stage = memory_stage()
    stage.configs.put_connector(STORED)
    stage.put({A: {"position": 1}, B: {"position": 5}})
    return stage


def altered(stage: Stage, position: int) -> int:
    """The number of a change that is made."""
    stage.changes().alter(stage.spec, [change(A, {"position": position})], who=None)
    return stage.changes().history("c")[0].id


def refused(stage: Stage, number: int, *, force: bool = False, dry_run: bool = False) -> str:
    """Why an undo is refused; nothing has changed then."""
    before = stage.known()
    with pytest.raises(BadRequestError) as caught:
        stage.changes().undo(stage.spec, number, who=None, force=force, dry_run=dry_run)
    assert before == stage.known()
    return str(caught.value)


@pytest.mark.parametrize("dry_run", [False, True])
@pytest.mark.parametrize("force", [False, True])
def test_what_was_not_done_is_not_undone(stage: Stage, *, force: bool, dry_run: bool):
    """Also not when offsets have moved since, and not by force."""
    stage.faults.at = "before commit"
    stage.faults.error = lambda: OffsetsError("odd")
    with pytest.raises(ServerError):
        altered(stage, 2)
    number = stage.changes().history("c")[0].id
    stage.put({A: {"position": 3}})

    told = refused(stage, number, force=force, dry_run=dry_run)

    assert f"Change {number} was not done, so there is nothing to undo" == told


def test_a_second_undo_names_the_first(stage: Stage):
    """What is there is what it would give."""
    number = altered(stage, 2)
    stage.changes().undo(stage.spec, number, who=None)
    undo = stage.changes().history("c")[0].id

    told = f"Change {number} of connector c was already undone by change {undo}"
    assert told == refused(stage, number) == refused(stage, number, dry_run=True)
    stage.changes().undo(stage.spec, undo, who=None)
    stage.changes().undo(stage.spec, number, who=None)
    assert {"position": 1} == stage.known()[A]


@pytest.mark.parametrize("dry_run", [False, True])
@pytest.mark.parametrize("force", [False, True])
def test_offsets_that_came_back_by_themselves_are_left_alone(
    stage: Stage, *, force: bool, dry_run: bool
):
    """No undo was made, so none is reported, and none is written."""
    number = altered(stage, 2)
    stage.put({A: {"position": 1}})
    before = stage.changes().history("c")

    told = stage.changes().undo(stage.spec, number, who=None, force=force, dry_run=dry_run)

    assert told == (
        f"Nothing was changed: the offsets are already those from before change {number}"
    )
    assert before == stage.changes().history("c")


def test_an_undo_that_was_overtaken_is_not_named(stage: Stage):
    """What brought the offsets back after it was not that undo."""
    number = altered(stage, 2)
    stage.changes().undo(stage.spec, number, who=None)
    altered(stage, 3)
    stage.put({A: {"position": 1}})

    assert "already those from before" in stage.changes().undo(stage.spec, number, who=None)


def test_a_forced_undo_of_what_is_undone_restores_nothing(stage: Stage):
    """It says so, and the history stays as it is."""
    number = altered(stage, 2)
    stage.changes().undo(stage.spec, number, who=None)
    before = stage.changes().history("c")

    told = stage.changes().undo(stage.spec, number, who=None, force=True)
    assert "already those from before" in told
    assert before == stage.changes().history("c")


@pytest.mark.parametrize("force", [False, True])
def test_changes_of_a_deleted_connector_are_not_those_of_the_next(stage: Stage, *, force: bool):
    """Its offsets are the same still, but another connector of that name never had that change."""
    old = altered(stage, 2)
    stage.configs.delete_connector("c")
    stage.configs.put_connector(STORED)

    told = "it belongs to an earlier connector c, which was deleted. Its offsets are in the history"
    assert told in refused(stage, old, force=force)
    number = altered(stage, 3)
    stage.changes().undo(stage.spec, number, who=None)
    assert {"position": 2} == stage.known()[A]


def test_an_old_creation_is_not_that_of_the_present_connector(stage: Stage):
    """Deleting the present one would not undo it."""
    stage.configs.delete_connector("c")
    stage.changes().create(stage.spec, STORED, [change(A, {})], who=None)
    number = stage.changes().history("c")[0].id
    stage.configs.delete_connector("c")
    stage.configs.put_connector(STORED)

    assert "earlier connector c" in refused(stage, number)


def test_the_refusal_of_a_creation_reports_what_it_wiped(stage: Stage):
    """So that it can be set by hand; nothing is said where nothing was wiped."""
    create = (
        "is the creation of connector c. To undo it, reset the connector's offsets and delete it."
    )
    stage.changes().create(stage.spec, STORED, [change(B, {"position": 7})], who=None)
    number = stage.changes().history("c")[0].id

    assert refused(stage, number) == (
        f"Change {number} {create} It wiped the offsets that the name had before, which can be set by hand: "
        '{"filename":"a"} at {"position":1}; {"filename":"b"} at {"position":5}.'
    )
    fresh = memory_stage()
    fresh.changes().create(fresh.spec, STORED, [change(B, {"position": 7})], who=None)
    assert f"Change 1 {create}" == refused(fresh, 1)


def test_what_a_failed_creation_wiped_is_restored_once(stage: Stage):
    """Without force, while nothing has been written since; then there is nothing left to undo."""
    stage.configs.delete_connector("c")
    stage.faults.at = "before finish"
    stage.faults.error = lambda: RetriableError("away")
    with pytest.raises(ServerError):
        stage.changes().create(stage.spec, STORED, [change(B, {"position": 7})], who=None)
    number = stage.changes().history("c")[0].id
    assert {} == stage.known()
    stage.configs.put_connector(STORED)

    stage.put({A: {"position": 9}})
    assert '{"filename":"a"} was left at null, is now at {"position":9}' in refused(stage, number)
    stage.put({A: None})
    stage.changes().undo(stage.spec, number, who=None)
    assert {A: {"position": 1}, B: {"position": 5}} == stage.known()
    assert "was not done" in refused(stage, number)
