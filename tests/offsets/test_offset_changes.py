"""Offsets are read, altered, reset, preset and restored, in Kafka Connect's words."""

from __future__ import annotations

import threading
from dataclasses import replace

import pytest

from headrace.connect.errors import OffsetsError, RetriableError
from headrace.herder.errors import BadRequestError, NotFoundError, RequestError, ServerError
from headrace.observe.secret_masking import Secrets
from headrace.offsets.connector_stores import NamedConnector
from headrace.storage.memory import MemoryOffsetStore
from headrace.storage.protocols import (
    Operation,
    TaskCount,
)
from offsets.changing import STORED, A, Asked, B, Stage, change, memory_stage

EXTERNALLY = "However, if this connector manages offsets externally, they will need to be manually"
SYSTEM = "in the system that the connector uses."


@pytest.fixture
def stage() -> Stage:
    """A connector with offsets for two files."""
    stage = memory_stage()
    stage.put({A: {"position": 1}, B: {"position": 5}})
    return stage


def refused(stage: Stage, *, hook_seconds: float = 20.0) -> RequestError:
    """What an alteration is answered."""
    with pytest.raises(RequestError) as caught:
        stage.changes(hook_seconds=hook_seconds).alter(
            stage.spec, [change(A, {"position": 2})], who=None
        )
    return caught.value


def test_offsets_are_read_without_a_connector(stage: Stage):
    """What is committed now, of whatever state; nothing for a name that has nothing."""
    read = stage.changes().read(NamedConnector(name="c"))

    assert {A: {"position": 1}, B: {"position": 5}} == {
        each.partition: each.offset for each in read
    }
    assert list(stage.changes().read(NamedConnector(name="d"))) == []


def test_offsets_that_cannot_be_read_are_reported(stage: Stage):
    """A store that is away is no connector without offsets."""

    class Away(MemoryOffsetStore):
        def refresh(self) -> None:
            raise RetriableError("away")

    away = replace(stage, offsets=Away())
    with pytest.raises(ServerError) as caught:
        away.changes().read(NamedConnector(name="c"))

    assert str(caught.value) == "Failed to retrieve offsets for source connector c: away"
    told = (
        "Timed out while trying to read to the end of the offsets topic prior to modifying offsets"
    )
    assert f"{told} for source connector c: away" == str(refused(away))


def test_an_alteration_changes_what_it_names(stage: Stage):
    """Other partitions stay, and a null offset removes one."""
    answer = stage.changes().alter(
        stage.spec, [change({"filename": "a"}, {"position": 2})], who=None
    )

    assert answer == "The offsets for this connector have been altered successfully"
    assert {A: {"position": 2}, B: {"position": 5}} == stage.known()
    stage.changes().alter(stage.spec, [change(A, None)], who=None)
    assert {B: {"position": 5}} == stage.known()


def test_a_reset_forgets_all(stage: Stage):
    """And may be repeated; the hook is asked each time."""
    for expected in (dict.fromkeys((A, B)), {}):
        stage.asked().clear()
        answer = stage.changes().reset(stage.spec, who=None)

        assert answer == "The offsets for this connector have been reset successfully"
        assert stage.known() == {}
        assert [("validate", expected), ("alter", expected)] == stage.asked()


def test_without_a_hook_that_handles_it_the_other_sentence_is_answered(stage: Stage):
    """The second text of success, with the verb of the request."""
    connector = stage.connector = Asked()
    connector.answer = False
    changes = stage.changes()

    for verb, answer in (
        ("altered", changes.alter(stage.spec, [change(A, {})], who=None)),
        ("reset", changes.reset(stage.spec, who=None)),
    ):
        framework = "The Connect framework-managed offsets for this connector have been"
        assert f"{framework} {verb} successfully. {EXTERNALLY} {verb} {SYSTEM}" == answer
    created = changes.create(stage.spec, STORED, [change(A, {})], who=None)
    framework = "The framework-managed offsets for this connector have been set successfully"
    assert f"{framework}. {EXTERNALLY} set {SYSTEM}" == created


def test_the_pure_hook_is_asked_before_anything_happens(stage: Stage):
    """A refusal has the hook's words; no one is fenced, nothing noted, the other hook not called."""
    connector = stage.connector = Asked()
    connector.refusal = OffsetsError("not these")

    error = refused(stage)

    assert (error.status, str(error)) == (500, "not these")
    assert stage.faults.reached == []
    assert [name for name, _ in stage.asked()] == ["validate"]


def test_the_acting_hook_is_called_once_after_fencing(stage: Stage):
    """Just before the write, with normalised offsets, and with sight of what is stored."""
    stage.changes().alter(stage.spec, [change({"filename": "a"}, {"position": 2})], who=None)

    assert ("alter", {A: {"position": 2}}) == stage.asked()[-1]
    assert [name for name, _ in stage.asked()].count("alter") == 1
    reached = ["fence 2", "before begin", "after begin", "before commit", "after commit"]
    assert [*reached, "before finish", "after finish"] == stage.faults.reached
    connector = stage.connector
    assert isinstance(connector, Asked)
    assert {A: {"position": 1}, B: {"position": 5}} == connector.visible


@pytest.mark.parametrize(
    ("veto", "told"),
    [
        (OffsetsError("no, thanks"), "no, thanks"),
        (
            NotImplementedError(),
            (
                "Failed to modify offsets for connector c because it doesn't support external "
                "modification of offsets"
            ),
        ),
        (ValueError("password=x"), "Failed to modify offsets for source connector c"),
    ],
)
def test_a_hooks_veto_leaves_everything_as_it_was(stage: Stage, veto: Exception, told: str):
    """What it raises says which sentence is answered; all are 500."""
    connector = stage.connector = Asked()
    connector.veto = veto

    error = refused(stage)

    assert (error.status, str(error)) == (500, told)
    assert {A: {"position": 1}, B: {"position": 5}} == stage.known()
    assert list(stage.changes().history("c")) == []


def test_a_hook_that_hangs_is_given_up(stage: Stage):
    """The request ends with Kafka Connect's sentence."""
    released = threading.Event()

    class Hanging(Asked):
        def alter_offsets(self, props: object, offsets: object) -> bool:
            released.wait(20.0)
            return True

    stage.connector = Hanging()
    try:
        error = refused(stage, hook_seconds=0.05)
    finally:
        released.set()

    told = "Timed out while calling the 'alterOffsets' method for source connector c"
    assert told == str(error)


@pytest.mark.parametrize(
    ("at", "error", "told"),
    [
        (
            "fence 2",
            RetriableError("late"),
            "Failed to perform zombie fencing for source connector prior to modifying offsets",
        ),
        (
            "before commit",
            RetriableError("late"),
            "Timed out while attempting to modify offsets for source connector c",
        ),
        (
            "after commit",
            OffsetsError("odd"),
            "Failed to modify offsets for source connector c",
        ),
        ("before begin", RetriableError("disk"), "Failed to modify offsets for source connector c"),
        (
            "before finish",
            RetriableError("disk"),
            "Failed to modify offsets for source connector c",
        ),
    ],
)
def test_a_failed_alteration_has_changed_nothing(
    stage: Stage, at: str, error: Exception, told: str
):
    """Wherever it fails, also when the broker had committed it all the same."""
    stage.faults.at = at
    stage.faults.error = lambda: error

    answered = refused(stage)

    assert (answered.status, str(answered)) == (500, f"{told}: {error}")
    assert {A: {"position": 1}, B: {"position": 5}} == stage.known()
    assert list(stage.changes_store.open_intents()) == []
    assert not any(each.done for each in stage.changes_store.entries("c"))


def test_a_cause_shows_no_secret(stage: Stage):
    """What the broker's client says behind Kafka Connect's words is told without the connector's secrets."""
    stage.faults.at = "before commit"
    stage.faults.error = lambda: RetriableError("kafka:9092: refused hunter2hunter2")
    secrets = Secrets(values={"hunter2hunter2": "[hidden]"})

    with pytest.raises(ServerError) as caught:
        stage.changes().reset(replace(stage.spec, secrets=secrets), who=None)

    assert str(caught.value) == (
        "Timed out while attempting to modify offsets for source connector c: kafka:9092: refused [hidden]"
    )


def test_an_unexpected_cause_is_not_reported(stage: Stage):
    """It may show anything."""
    stage.faults.at = "before commit"
    stage.faults.error = lambda: ValueError("password=x")

    assert "Failed to modify offsets for source connector c" == str(refused(stage))


def test_without_exactly_once_no_one_is_fenced(stage: Stage):
    """There are no transactional ids."""
    stage.exactly_once = False
    stage.changes().alter(stage.spec, [change(A, {"position": 2})], who=None)

    assert not any(each.startswith("fence") for each in stage.faults.reached)
    assert stage.configs.task_count("c") is None


def test_a_change_fences_all_that_an_earlier_generation_left(stage: Stage):
    """The change itself leaves one writer at most."""
    stage.configs.put_task_count("c", TaskCount(slots=7))
    stage.changes().alter(stage.spec, [change(A, {"position": 2})], who=None)

    assert stage.faults.reached[0] == "fence 7"


def test_a_dry_run_reports_and_touches_nothing(stage: Stage):
    """What would change, and that the connector accepts it; partitions that stay are not told."""
    changes = stage.changes()
    altering = changes.alter(
        stage.spec, [change(A, {"position": 2}), change(B, {"position": 5})], who=None, dry_run=True
    )
    resetting = changes.reset(stage.spec, who=None, dry_run=True)
    creating = changes.create(stage.spec, STORED, [change(B, None)], who=None, dry_run=True)

    a = 'these offsets would change: {"filename":"a"} from {"position":1} to'
    assert f'Dry run: {a} {{"position":2}}. The connector accepts these offsets.' == altering
    gone = f'Dry run: {a} null; {{"filename":"b"}} from {{"position":5}} to null.'
    assert resetting.startswith(gone)
    assert creating.startswith(gone)
    assert {A: {"position": 1}, B: {"position": 5}} == stage.known()
    assert stage.faults.reached == []
    assert "alter" not in [name for name, _ in stage.asked()]


def test_a_dry_run_says_when_nothing_would_change(stage: Stage):
    """The same offset again is no change."""
    told = stage.changes().alter(stage.spec, [change(B, {"position": 5})], who=None, dry_run=True)

    assert told == "Dry run: no offset would change. The connector accepts these offsets."


def test_every_change_is_in_the_history(stage: Stage):
    """Who, when, and the changed partitions only, before and after; a failed one is not done."""
    changes = stage.changes()
    changes.alter(stage.spec, [change(A, {"position": 2}), change(B, {"position": 5})], who="ann")
    stage.now_ms += 1000
    changes.reset(stage.spec, who=None)
    changes.reset(stage.spec, who=None)

    reset, altered = changes.history("c")
    assert (Operation.ALTER, "ann", True) == (altered.operation, altered.who, altered.done)
    assert {A: {"position": 1}} == altered.before
    assert {A: {"position": 2}} == altered.after
    assert (Operation.RESET, None, altered.at_ms + 1000) == (
        reset.operation,
        reset.who,
        reset.at_ms,
    )
    assert {A: {"position": 2}, B: {"position": 5}} == reset.before
    assert dict.fromkeys((A, B)) == reset.after


def test_an_undo_restores_its_partitions_only(stage: Stage):
    """What other changes did meanwhile stays; the undo goes through the hooks and can be undone."""
    changes = stage.changes()
    changes.alter(stage.spec, [change(A, None)], who=None)
    changes.alter(stage.spec, [change(B, {"position": 6})], who=None)
    number = changes.history("c")[-1].id
    stage.asked().clear()

    answer = changes.undo(stage.spec, number, who="bob")

    assert answer == "The offsets for this connector have been restored successfully"
    assert {A: {"position": 1}, B: {"position": 6}} == stage.known()
    assert [(name, {A: {"position": 1}}) for name in ("validate", "alter")] == stage.asked()
    entry = changes.history("c")[0]
    assert (Operation.UNDO, number, "bob") == (entry.operation, entry.undoes, entry.who)
    changes.undo(stage.spec, entry.id, who="bob")
    assert {B: {"position": 6}} == stage.known()


def test_an_undo_of_offsets_that_moved_is_refused_unless_forced(stage: Stage):
    """The refusal shows where they were left, where they are, and where they would go."""
    changes = stage.changes()
    changes.alter(stage.spec, [change(A, {"position": 9})], who=None)
    number = changes.history("c")[0].id
    stage.put({A: {"position": 20}})

    with pytest.raises(BadRequestError) as caught:
        changes.undo(stage.spec, number, who=None)

    assert (
        '{"filename":"a"} was left at {"position":9}, is now at {"position":20}, and would go back to '
        '{"position":1}'
    ) in str(caught.value)
    assert {"position": 20} == stage.known()[A]
    changes.undo(stage.spec, number, who=None, force=True)
    assert {"position": 1} == stage.known()[A]


def test_what_cannot_be_undone_is_reported(stage: Stage):
    """Unknown changes, those of other connectors, and creations, with what to do instead."""
    changes = stage.changes()
    changes.create(stage.spec, STORED, [change(A, {})], who=None)
    number = changes.history("c")[0].id

    with pytest.raises(BadRequestError, match="reset the connector's offsets and delete it"):
        changes.undo(stage.spec, number, who=None)
    for name, unknown in (("c", number + 1), ("d", number)):
        with pytest.raises(
            NotFoundError, match=f"history of connector {name}'s offsets has no change {unknown}"
        ):
            changes.undo(replace(stage.spec, name=name), unknown, who=None)
