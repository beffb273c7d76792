"""`headrace connectors`: what it prints, what it requests from a worker, and how it ends."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from cli.conftest import Shell, Worker
from doubles.puppets import PLANNED
from headrace.connect.errors import TaskFailedError
from waiting import until


def written(folder: Path, **more: object) -> Path:
    """A file that describes connector ``d``."""
    file = folder / "d.json"
    config = {"connector.class": PLANNED, "tasks.max": "1"}
    file.write_text(json.dumps({"name": "d", "config": config, **more}))
    return file


def test_connectors_are_listed(shell: Shell, worker: Worker):
    """With their states, counted where there are many."""
    until(lambda: len(worker.stage.states()) == 3)

    assert [
        "connector  state    tasks      class",
        f"c          RUNNING  2 RUNNING  {PLANNED}",
    ] == shell.done("connectors", "list").splitlines()
    assert ["c"] == list(shell("connectors", "list", "--json").json)
    shell.done("connectors", "delete", "c")
    assert "There are no connectors.\n" == shell.done("connectors", "list")


def test_a_connector_is_created(shell: Shell, worker: Worker, tmp_path: Path):
    """As in its file, once."""
    file = written(tmp_path, initial_state="PAUSED")

    assert "Connector d is created.\n" == shell.done("connectors", "create", file)
    assert "PAUSED" == worker.stage.configs.connectors()["d"].target_state
    assert "headrace: Connector d already exists\n" == shell.failed("connectors", "create", file)


def test_a_creation_is_tried(shell: Shell, worker: Worker, tmp_path: Path):
    """What is wrong is reported; what is right is not created."""
    shown = shell.done("connectors", "create", written(tmp_path), "--dry-run")

    assert "Dry run: connector d would be created; its configuration is valid.\n" == shown
    wrong = written(tmp_path, config={"wrong": "x"})
    assert "it is wrong" in shell.failed("connectors", "create", wrong, "--dry-run")
    assert ["c"] == list(worker.herder.connectors())


def test_a_connector_is_created_with_offsets(shell: Shell, worker: Worker, tmp_path: Path):
    """From an export; a dry run shows them and creates nothing."""
    worker.put(a=5)
    export = tmp_path / "c.offsets"
    shell.done("offsets", "export", "c", export)
    create = ("connectors", "create", written(tmp_path), "--state", "stopped", "--offsets", export)

    assert 'would change: {"file":"a"} from null to {"at":5}' in shell.done(*create, "--dry-run")
    assert ["c"] == list(worker.herder.connectors())
    assert "offsets for this connector have been set successfully" in shell.done(*create)
    assert {"at": 5} == worker.herder.offsets("d")[0].offset
    assert "STOPPED" == worker.stage.configs.connectors()["d"].target_state


def test_a_status_reports_why_something_failed(shell: Shell, worker: Worker):
    """With the lines of the trace, and no other colour of the terminal than its own."""
    until(lambda: len(worker.stage.states()) == 3)
    worker.stage.the_run().end(TaskFailedError("line one\n\x1b[31mline two"))
    shown = shell.done("connectors", "status", "c").splitlines()

    assert "c is FAILED on w." == shown[0]
    assert ["task  state    worker", "0     RUNNING  w", "1     RUNNING  w"] == shown[2:5]
    assert ["connector:", "line one", "\\x1b[31mline two"] == shown[6:]
    assert "FAILED" == shell("connectors", "status", "c", "--json").json["connector"]["state"]


def test_a_connector_is_paused_stopped_and_resumed(shell: Shell, worker: Worker):
    """Each is stored when the command ends."""
    for word, state in (("pause", "PAUSED"), ("stop", "STOPPED"), ("resume", "RUNNING")):
        assert f"Target state of connector c: {state}.\n" == shell.done("connectors", word, "c")
        assert state == worker.stage.configs.connectors()["c"].target_state
        shown = shell.failed("connectors", word, "x")
        assert shown.startswith("headrace: Unknown connector x. At http://")


def test_a_connector_is_restarted(shell: Shell, worker: Worker):
    """All of it, what failed, or one task."""
    until(lambda: len(worker.stage.states()) == 3)

    assert "Connector c is restarted.\n" == shell.done("connectors", "restart", "c")
    until(lambda: len(worker.stage.states()) == 3 and worker.stage.running)
    failed = shell.done("connectors", "restart", "c", "--only-failed").splitlines()
    assert (
        "Nothing of connector c is restarted: none of the selected parts has failed." == failed[-1]
    )
    assert failed[0].startswith("c is RUNNING on ")
    every = shell.done("connectors", "restart", "c", "--include-tasks").splitlines()
    assert ["", "Connector c is restarted."] == every[-2:]
    until(lambda: len(worker.stage.states()) == 3 and worker.stage.running)
    assert "Connector c is restarted.\n" == shell.done("connectors", "restart", "c", "--task", 1)
    assert "Unknown task: c-7" in shell.failed("connectors", "restart", "c", "--task", 7)
    assert "either" in shell.failed(
        "connectors", "restart", "c", "--task", 1, "--only-failed", code=2
    )


@pytest.mark.parametrize(("word", "state"), [("stop", "STOPPED"), ("pause", "PAUSED")])
def test_a_restart_of_what_is_not_to_run_says_so(
    shell: Shell, worker: Worker, word: str, state: str
):
    """With the command that lets it run."""
    until(lambda: len(worker.stage.states()) == 3)
    shell.done("connectors", word, "c")
    until(lambda: worker.stage.states()[None] == state)

    shown = (
        f"Connector c stays {state}: it is not restarted. "
        "Start it with 'headrace connectors resume c'.\n"
    )
    assert shown == shell.done("connectors", "restart", "c")
    assert shell.done("connectors", "restart", "c", "--only-failed").endswith(shown)


def test_a_configuration_is_shown_and_changed(shell: Shell, tmp_path: Path):
    """By key, or as a whole."""
    shown = [f"connector.class={PLANNED}", "name=c", "tasks.max=2"]

    assert shown == shell.done("connectors", "config", "c").splitlines()
    changed = shell.done("connectors", "config", "c", "--set", "a.b=x=y")
    assert ["a.b=x=y", *shown] == changed.splitlines()
    changed = shell.done("connectors", "config", "c", "--unset", "a.b", "--set", "b=")
    assert ["b=", *shown] == changed.splitlines()
    file = tmp_path / "c.properties"
    file.write_text(f"name=c\nconnector.class={PLANNED}\ntasks.max=1\n")
    shell.done("connectors", "config", "c", "--file", file)
    assert {"name": "c", "connector.class": PLANNED, "tasks.max": "1"} == shell(
        "connectors", "config", "c", "--json"
    ).json


def test_a_change_that_is_no_pair_is_wrong_usage(shell: Shell, tmp_path: Path):
    """Exit code 2."""
    assert "KEY=VALUE" in shell.failed("connectors", "config", "c", "--set", "x", code=2)
    both = ("connectors", "config", "c", "--set", "a=b", "--file", tmp_path)
    assert "either" in shell.failed(*both, code=2)


@pytest.mark.parametrize("name", ["a/b", "..", "ä %", "x?y#z", "%2F"])
def test_names_may_hold_anything(shell: Shell, tmp_path: Path, name: str):
    """They arrive as they are."""
    config = {"connector.class": PLANNED, "tasks.max": "1"}
    (tmp_path / "x.json").write_text(json.dumps({"name": name, "config": config}))
    shell.done("connectors", "create", tmp_path / "x.json")

    assert f"name={name}" in shell.done("connectors", "config", name)
    shell.done("connectors", "delete", name)
    assert name not in shell.done("connectors", "list")
