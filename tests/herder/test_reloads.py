"""Files behind placeholders are looked at, and connectors restarted, only when that changes something."""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping
from pathlib import Path

import pytest

from headrace.config.providers import DirectoryProvider, FileProvider, Resolution, resolution
from headrace.connect.errors import ConnectorFencedError
from headrace.herder.answers import State
from headrace.herder.errors import NotFoundError
from headrace.herder.protocol import Config
from headrace.herder.reloads import PlaceholderChanges, Reloads, placeholder_changes
from headrace.herder.requests import CreateRequest, RestartRequest
from herder.stage import Stage, config
from waiting import until


def found(config: Config) -> Resolution:
    """*config* with what files say now."""
    return resolution(config, {"file": FileProvider(), "directory": DirectoryProvider()})


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ({"a": "1"}, {"a": "1"}, PlaceholderChanges.NONE),
        ({"a": "1"}, {"a": "2"}, PlaceholderChanges.RESTART),
        ({"a": "1"}, {"a": "2", "config.action.reload": "restart"}, PlaceholderChanges.RESTART),
        ({"a": "1"}, {"a": "2", "config.action.reload": "none"}, PlaceholderChanges.LEFT_ALONE),
        ({"a": "1"}, {"a": "1", "config.action.reload": None}, PlaceholderChanges.RESTART),
    ],
)
def test_what_changed_decides(before: Config, after: Config, expected: PlaceholderChanges):
    """And what the configuration says of it."""
    assert expected is placeholder_changes(
        Resolution(given={}, resolved=before), Resolution(given={}, resolved=after)
    )


def test_what_cannot_be_resolved_now_is_no_change():
    """A file may just be written again."""
    began = Resolution(given={}, resolved={"a": "1"})
    now = Resolution(given={}, resolved={"a": "${x}"}, problems=(("a", "lost"),))

    assert PlaceholderChanges.UNREADABLE is placeholder_changes(began, now)


class Looked:
    """A look at one connector ``c`` whose *config* takes values from files."""

    def __init__(self, config: Config) -> None:
        self.began = found(config)
        self.restarted: list[str] = []
        self.resolved = 0
        self.reloads = Reloads(self._begun, self._resolved, self.restarted.append)
        self.reloads.look()

    def _begun(self) -> Mapping[str, Resolution]:
        return {"c": self.began}

    def _resolved(self, config: Config) -> Resolution:
        self.resolved += 1
        return found(config)


@pytest.fixture
def secrets(tmp_path: Path) -> Path:
    """A file with a value."""
    file = tmp_path / "s.properties"
    file.write_text("a=1", "utf-8")
    return file


def test_a_changed_file_restarts_once(secrets: Path):
    """Though it is looked at again before the connector has begun again."""
    looked = Looked({"x": f"${{file:{secrets}:a}}"})
    secrets.write_text("a=22", "utf-8")
    looked.reloads.look()
    looked.reloads.look()

    assert ["c"] == looked.restarted
    looked.began = found(looked.began.given)
    looked.reloads.look()
    assert ["c"] == looked.restarted


def test_a_file_that_is_as_it_was_is_not_read(secrets: Path):
    """Its time of change is enough; one that was only touched is read, and changes nothing."""
    looked = Looked({"x": f"${{file:{secrets}:a}}"})
    looked.reloads.look()
    assert 1 == looked.resolved

    os.utime(secrets, (1, 1))
    looked.reloads.look()
    assert (2, []) == (looked.resolved, looked.restarted)


def test_a_link_that_leads_elsewhere_is_a_change(tmp_path: Path):
    """So secrets are renewed that Kubernetes puts into a folder."""
    for name in ("1", "2"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "pin").write_text(name, "utf-8")
        os.utime(tmp_path / name / "pin", (1, 1))
    (tmp_path / "now").symlink_to("1")
    looked = Looked({"x": f"${{directory:{tmp_path}/now:pin}}"})
    (tmp_path / "new").symlink_to("2")
    (tmp_path / "new").rename(tmp_path / "now")
    looked.reloads.look()

    assert ["c"] == looked.restarted


def test_a_file_that_is_gone_for_a_moment_restarts_nothing(
    secrets: Path, caplog: pytest.LogCaptureFixture
):
    """It is told once; what it holds when it is back counts."""
    looked = Looked({"x": f"${{file:{secrets}:a}}"})
    secrets.unlink()
    with caplog.at_level(logging.WARNING):
        looked.reloads.look()
        looked.reloads.look()
    assert 1 == len(caplog.records)
    secrets.write_text("a=1", "utf-8")
    looked.reloads.look()
    assert [] == looked.restarted

    secrets.write_text("a=333", "utf-8")
    looked.reloads.look()
    assert ["c"] == looked.restarted


def test_a_restart_that_failed_is_tried_again(secrets: Path):
    """At the next look."""
    looked = Looked({"x": f"${{file:{secrets}:a}}"})
    tries: list[str] = []

    def fail(name: str) -> None:
        tries.append(name)
        raise NotFoundError(f"Connector {name} not found")

    reloads = Reloads(lambda: {"c": looked.began}, found, fail)
    secrets.write_text("a=22", "utf-8")
    for _ in range(2):
        with pytest.raises(NotFoundError):
            reloads.look()

    assert ["c", "c"] == tries


def pin_of(stage: Stage, name: str) -> str | None:
    """What the connector runs with, if it runs."""
    with stage.guard:
        pins = (each.spec.props["pin"] for each in stage.running if each.spec.name == name)
        return next(pins, None)


def test_a_running_connector_begins_again_with_the_new_value(secrets: Path):
    """One that wants to be left alone, or is paused, is."""
    stage = Stage(look_seconds=0.01)
    given = config(pin=f"${{file:{secrets}:a}}")
    with stage.herder() as herder:
        herder.create(CreateRequest(name="c", config=given))
        alone = {**given, "config.action.reload": "none"}
        herder.create(CreateRequest(name="alone", config=alone))
        herder.create(CreateRequest(name="paused", config=given))
        herder.pause("paused")
        until(lambda: herder.status("paused").connector.state is State.PAUSED)
        first, other = stage.the_run("c"), stage.the_run("alone")
        secrets.write_text("a=22", "utf-8")
        until(lambda: "22" == pin_of(stage, "c"))

        assert first.asked.is_set()
        assert other is stage.the_run("alone")
        assert State.PAUSED is herder.status("paused").connector.state
        herder.resume("paused")
        until(lambda: "22" == pin_of(stage, "paused"))


def test_a_connector_that_could_not_start_does_when_its_file_is_there(secrets: Path):
    """It has failed by then, because its placeholder stood for nothing."""
    stage = Stage(look_seconds=0.01)
    secrets.unlink()
    with stage.herder() as herder:
        herder.create(CreateRequest(name="c", config=config(pin=f"${{file:{secrets}:a}}")))
        until(lambda: herder.status("c").connector.state is State.FAILED)
        secrets.write_text("a=4", "utf-8")

        until(lambda: "4" == pin_of(stage, "c"))


def test_a_connector_that_another_worker_has_taken_over_stays_failed(secrets: Path):
    """Both would take it from each other at each change; a restart on request gets the new value."""
    stage = Stage(look_seconds=0.01)
    given = config(pin=f"${{file:{secrets}:a}}")
    with stage.herder() as herder:
        for name in ("c", "later"):
            herder.create(CreateRequest(name=name, config=given))
        stage.the_run("c").end(ConnectorFencedError("Another worker has taken over connector c."))
        until(lambda: herder.failed() == ["c"])
        secrets.write_text("a=22", "utf-8")
        until(lambda: "22" == pin_of(stage, "later"))
        # Its file has been looked at by now: that of the other connector comes after it.
        assert ["c"] == herder.failed()

        herder.restart(RestartRequest(name="c"))
        until(lambda: "22" == pin_of(stage, "c"))
        secrets.write_text("a=333", "utf-8")
        until(lambda: "333" == pin_of(stage, "c"))
