"""Dry runs, history and undo: what the herder asks of the connector's state, and what it leaves alone."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest

from headrace.connect.partition import SourcePartition
from headrace.herder.answers import ChangedOffset
from headrace.herder.errors import AlreadyExistsError, BadRequestError, NotFoundError
from headrace.herder.requests import CreateRequest, OffsetChange, UndoRequest
from headrace.herder.worker_herder import WorkerHerder
from headrace.storage.protocols import (
    HistoryEntry,
    Operation,
)
from herder.stage import Stage, config, request
from waiting import until

A = SourcePartition(f="a")
CHANGES = [OffsetChange(partition={"f": "a"}, offset={"p": 1})]
ENTRY = HistoryEntry(
    id=4,
    connector="c",
    operation=Operation.ALTER,
    who="ann",
    at_ms=7,
    before={A: None},
    after={A: {"p": 1}},
    done=True,
)
TRIED: dict[str, Callable[[WorkerHerder], str]] = {
    "altered": lambda herder: herder.alter_offsets("c", CHANGES, dry_run=True),
    "reset": lambda herder: herder.reset_offsets("c", dry_run=True),
    "undone 4": lambda herder: herder.undo_offsets(UndoRequest(name="c", change=4, dry_run=True)),
}


def tried(name: str, offsets: Sequence[OffsetChange] | None = None) -> CreateRequest:
    """A creation that is only tried."""
    return CreateRequest(name=name, config=config(), dry_run=True, initial_offsets=offsets)


@pytest.mark.parametrize("what", TRIED)
def test_a_dry_run_is_answered_while_the_connector_runs(what: str):
    """Nothing is changed, and what runs goes on."""
    stage = Stage()
    with stage.herder() as herder:
        herder.create(request())
        until(lambda: stage.running)

        assert f"would have {what} it" == TRIED[what](herder)
        assert stage.the_run().asked.is_set() is False
        assert [] == stage.changes.done


@pytest.mark.parametrize("what", TRIED)
def test_a_dry_run_needs_a_connector(what: str):
    """404 without."""
    with Stage().herder() as herder, pytest.raises(NotFoundError):
        TRIED[what](herder)


def test_a_creation_is_tried():
    """Nothing is stored, and nothing runs; the offsets are tried with it."""
    stage = Stage()
    with stage.herder() as herder:
        plain = herder.create(tried("c"))
        preset = herder.create(tried("c", CHANGES))

        assert (None, "would have created it") == (plain.offsets_message, preset.offsets_message)
        assert ("c", []) == (preset.info.name, list(preset.info.tasks))
        assert ([], []) == (list(herder.connectors()), stage.running)


@pytest.mark.parametrize("offsets", [None, CHANGES])
def test_a_creation_that_would_be_refused_is_refused(offsets: list[OffsetChange] | None):
    """For its name, its configuration, or because the connector cannot be made."""
    stage = Stage()
    with stage.herder() as herder:
        herder.create(request())

        with pytest.raises(AlreadyExistsError):
            herder.create(tried("c", offsets))
        for key in ("wrong", "broken"):
            bad = CreateRequest(
                name="d", config=config(**{key: "x"}), dry_run=True, initial_offsets=offsets
            )
            with pytest.raises(BadRequestError) as caught:
                herder.create(bad)
            assert (offsets is not None) == ("failed at step 1" in str(caught.value))
        assert ["c"] == list(herder.connectors())


def test_undoing_needs_a_stopped_connector_of_which_nothing_runs():
    """As altering does."""
    stage = Stage()
    undo = UndoRequest(name="c", change=4)
    with stage.herder() as herder:
        herder.create(request())
        with pytest.raises(BadRequestError, match="must be in the STOPPED state"):
            herder.undo_offsets(undo)
        herder.stop("c")

        # The changes of the stage assert that nothing runs.
        assert "undone 4 it" == herder.undo_offsets(undo)
        assert [("undone 4", "c")] == stage.changes.done


def test_history_is_reported_of_connectors_that_are_gone():
    """A connector without changes has none; a name that never was one is not found."""
    stage = Stage()
    stage.changes.entries = [ENTRY]
    with stage.herder() as herder:
        [told] = herder.offset_history("c")
        herder.create(request("d"))

        assert (4, "alter", "ann", 7, True, None) == (
            told.id,
            told.operation,
            told.who,
            told.at_ms,
            told.done,
            told.undoes,
        )
        assert [ChangedOffset(partition=A, before=None, after={"p": 1})] == told.offsets
        assert [] == list(herder.offset_history("d"))
        with pytest.raises(NotFoundError):
            herder.offset_history("e")
