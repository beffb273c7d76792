"""A connector is created with offsets in five steps, and a failure in any of them leaves what is specified."""

from __future__ import annotations

from contextlib import nullcontext

import pytest

from headrace.connect.errors import OffsetsError, RetriableError
from headrace.herder.errors import AlreadyExistsError, BadRequestError, RequestError
from headrace.offsets.alteration import CreationStep, creation_step
from headrace.storage.protocols import Operation
from offsets.changing import STORED, A, Asked, B, Stage, change, memory_stage

OLD = {A: {"position": 1}, B: {"position": 5}}
INITIAL = [change({"filename": "b"}, {"position": 7}), change({"filename": "n"}, None)]


@pytest.fixture(params=["topic", "same storage"])
def stage(request: pytest.FixtureRequest) -> Stage:
    """A name that has offsets of an earlier connector."""
    stage = memory_stage()
    if request.param == "same storage":
        stage.local, stage.exactly_once = True, False
    stage.put(OLD)
    return stage


def failed(stage: Stage) -> RequestError:
    """How the creation is answered."""
    with pytest.raises(RequestError) as caught:
        stage.changes().create(stage.spec, STORED, INITIAL, who="ann")
    return caught.value


def test_a_creation_wipes_and_presets(stage: Stage):
    """Remnants go, an entry with a null offset writes nothing, and the configuration is stored."""
    answer = stage.changes().create(stage.spec, STORED, INITIAL, who="ann")

    assert answer == "The offsets for this connector have been set successfully"
    assert {B: {"position": 7}} == stage.known()
    assert {"c": STORED} == stage.configs.connectors()
    (entry,) = stage.changes().history("c")
    assert (Operation.CREATE, True) == (entry.operation, entry.done)
    assert OLD == entry.before
    assert {A: None, B: {"position": 7}} == entry.after


def test_hooks_of_a_creation_see_the_initial_offsets_only(stage: Stage):
    """What is wiped is no offset of the new connector."""
    stage.changes().create(stage.spec, STORED, INITIAL[:1], who=None)

    assert [(name, {B: {"position": 7}}) for name in ("validate", "alter")] == stage.asked()
    assert isinstance(stage.connector, Asked)
    assert stage.connector.visible == {}


def test_a_creation_that_changes_no_offset_is_stored(stage: Stage):
    """The name has just these offsets already, or there are none."""
    stage.put({A: None})
    stage.changes().create(stage.spec, STORED, [change(B, {"position": 5})], who=None)

    assert {"c": STORED} == stage.configs.connectors()
    assert [True] == [each.done for each in stage.changes().history("c")]


@pytest.mark.parametrize("hook", ["refusal", "veto"])
def test_a_refusal_is_step_two(stage: Stage, hook: str):
    """Status and words are the hook's; nothing was touched."""
    stage.connector = Asked()
    setattr(stage.connector, hook, OffsetsError("not these"))
    error = failed(stage)

    step = "(creating connector c failed at step 2: validating the offsets)"
    assert (500, f"not these {step}") == (error.status, str(error))
    assert stage.known() == OLD
    assert stage.configs.connectors() == {}


def test_a_malformed_form_is_step_two(stage: Stage):
    """And a bad request."""
    with pytest.raises(RequestError, match=r"Map \(creating .* failed at step 2: ") as caught:
        stage.changes().create(stage.spec, STORED, [change("a", None)], who=None)

    assert caught.value.status == 400


@pytest.mark.parametrize(
    ("stage", "at", "step"),
    [
        ("topic", "fence 2", "3: wiping existing offsets"),
        ("topic", "before begin", "3: wiping existing offsets"),
        ("topic", "before commit", "4: setting the initial offsets"),
        ("topic", "after commit", "4: setting the initial offsets"),
        ("topic", "before finish", "5: writing the config"),
        ("same storage", "before begin", "3: wiping existing offsets"),
        ("same storage", "before finish", "5: writing the config"),
    ],
    indirect=["stage"],
)
def test_a_failure_is_reported_with_its_step(stage: Stage, at: str, step: str):
    """Up to step 4 the old offsets stay; step 5 has wiped them, unless it is all one with the others."""
    stage.faults.at = at
    stage.faults.error = lambda: RetriableError("away")

    error = failed(stage)

    assert str(error).endswith(f" (creating connector c failed at step {step})")
    assert ({} if step[0] == "5" and not stage.local else OLD) == stage.known()
    assert stage.configs.connectors() == {}
    assert list(stage.changes_store.open_intents()) == []
    entries = stage.changes().history("c")
    assert [] == [each for each in entries if each.done]
    assert all(each.before == OLD for each in entries)


def test_what_failed_at_the_last_step_can_be_restored(stage: Stage):
    """The history has what the name had before; where nothing was wiped, there is nothing to undo."""
    stage.faults.at = "before finish"
    stage.faults.error = lambda: RetriableError("away")
    failed(stage)
    stage.faults.at = None
    changes = stage.changes()

    with pytest.raises(BadRequestError, match="was not done") if stage.local else nullcontext():
        changes.undo(stage.spec, changes.history("c")[0].id, who=None, force=True)

    assert stage.known() == OLD


def test_the_herders_own_step_is_reported_alike():
    """Whatever request error it is, its kind and status stay."""
    with (
        pytest.raises(AlreadyExistsError) as caught,
        creation_step("c", CreationStep.VALIDATING_CONFIG),
    ):
        raise AlreadyExistsError("c")

    told = (
        "Connector c already exists (creating connector c failed at step 1: validating the config)"
    )
    assert (409, told) == (caught.value.status, str(caught.value))
