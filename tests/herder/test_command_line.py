"""Connectors that a command line names."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

import pytest

from headrace.config.config_files import ConnectorFile
from headrace.connect.errors import ConnectError
from headrace.herder.answers import ConfigInfos, TargetState
from headrace.herder.command_line import create_or_update
from headrace.herder.errors import BadRequestError
from headrace.storage.protocols import StoredConnector
from herder.stage import Judge, Stage, config
from herder.test_herder import CHANGE
from waiting import until


def file(name: str = "c", **more: object) -> ConnectorFile:
    """A file that says no more than it must."""
    given = {key: value or "" for key, value in config(name=name).items()}
    return ConnectorFile(name=name, config=given, **more)  # type: ignore[arg-type]


def test_new_ones_begin_as_their_files_say() -> None:
    """With their state and offsets."""
    stage = Stage()
    with stage.herder() as herder:
        create_or_update([file(), file("d", initial_state=TargetState.STOPPED)], herder)
        create_or_update([file("e", initial_offsets=[CHANGE])], herder)

        until(lambda: "RUNNING" == stage.states()[None])
        assert {None: "STOPPED"} == stage.states("d")
        assert [("created", "e")] == stage.changes.done


def test_stored_ones_get_the_configuration_and_nothing_else(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """One line in the log says what is ignored; the same configuration again changes nothing."""
    stage = Stage()
    with stage.herder() as herder, caplog.at_level(logging.INFO):
        create_or_update([file()], herder)
        run = stage.the_run()
        create_or_update([file(initial_state=TargetState.PAUSED, initial_offsets=[CHANGE])], herder)
        assert run is stage.the_run()
        create_or_update(
            [ConnectorFile(name="c", config={**file().config, "tasks.max": "1"})], herder
        )
        until(lambda: stage.states() == {None: "RUNNING", 0: "RUNNING"})

        assert [] == stage.changes.done
        [told] = [each for each in caplog.messages if "ignored" in each]
        assert told.startswith("Connector c is already stored")


def test_the_first_refusal_is_reported() -> None:
    """Those before it are there."""
    with Stage().herder() as herder:
        wrong = ConnectorFile(name="d", config={**file("d").config, "wrong": "yes"})
        with pytest.raises(BadRequestError, match="it is wrong"):
            create_or_update([file(), wrong], herder)
        assert ["c"] == list(herder.connectors())


def test_one_whose_creation_was_interrupted_is_stored_by_the_time_it_is_asked_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The worker was killed after its offsets were committed: the next start finishes it, and goes on."""
    stage = Stage(unsettled=["c"])

    def recover(*_: object, only: str | None = None) -> Mapping[str, ConnectError]:
        stage.configs.put_connector(
            StoredConnector(name="c", config=file().config, target_state="STOPPED")
        )
        return {}

    def validate(*given: Any) -> ConfigInfos:  # noqa: ANN401 (passed on)
        # The names that are stored have been asked for by now.
        stage.kafka.set()
        return Judge().validate(*given)

    monkeypatch.setattr(stage.changes, "recover", recover)
    monkeypatch.setattr(stage.judge, "validate", validate)
    with stage.herder(kafka=False) as herder:
        create_or_update([file(initial_offsets=[CHANGE])], herder)

        until(lambda: stage.states() == {None: "STOPPED"})
        assert [] == stage.changes.done
