"""`headrace offsets --mirror`: the worker that it opens for one command, and what that leaves behind."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from cli.conftest import Shell
from cli.test_mirror_command import written
from headrace.cli.mirror_offsets import stopped_flow
from headrace.cli.mirror_process import state_file
from headrace.cli.rest_client import WorkerError
from headrace.connect.errors import ConfigError
from headrace.herder.services import KafkaServices
from headrace.mirror.dedicated import SOURCE_CONNECTOR
from headrace.storage.protocols import Status, StoredConnector
from headrace.storage.sqlite import SqliteStorage
from headrace.worker import standalone

PLACE: Mapping[str, object] = {"cluster": "A", "topic": "t", "partition": 0}
CHANGE = {"offsets": [{"partition": PLACE, "offset": {"offset": 3}}]}


class Changes:
    """Takes every change."""

    def __init__(self) -> None:
        self.made = list[str]()

    def recover(self, *_: object, only: str | None = None) -> Mapping[str, Exception]:
        """Nothing was interrupted."""
        return {}

    def alter(self, spec: Any, changes: Sequence[object], *, who: str | None, dry_run: bool) -> str:  # noqa: ANN401 (a RunSpec)
        """Done."""
        self.made.append(f"{spec.name}: {len(changes)} by {who}, dry run: {dry_run}")
        return "done"


def without_kafka(changes: Changes) -> Any:  # noqa: ANN401 (in place of a method)
    """Opens a worker whose cluster takes every change."""
    services: Any = SimpleNamespace()
    opened: Any = changes
    return lambda _: KafkaServices(services=services, changes=opened)


@pytest.fixture
def changes(monkeypatch: pytest.MonkeyPatch) -> Changes:
    """Those that workers are asked for."""
    taken = Changes()
    monkeypatch.setattr(standalone.KafkaOpening, "open", without_kafka(taken))
    return taken


def run_before(folder: Path) -> None:
    """The flow A->B has run, and so has a connector that was created by a request."""
    with closing(SqliteStorage(state_file(folder, "A->B"))) as storage:
        for name in (SOURCE_CONNECTOR, "another"):
            storage.configs.put_connector(StoredConnector(name=name, config={"name": name}))
            storage.configs.put_task_configs(name, [{"task": "0"}])
            storage.statuses.put(name, None, Status(state="RUNNING", worker_id="w"))
            storage.statuses.put(name, 0, Status(state="RUNNING", worker_id="w"))


def content(folder: Path) -> list[str]:
    """All that the state file of the flow A->B holds."""
    with closing(sqlite3.connect(state_file(folder, "A->B"))) as file:
        return list(file.iterdump())


def test_a_command_leaves_the_connectors_as_they_were(changes: Changes, tmp_path: Path) -> None:
    """They are stopped for its worker alone."""
    run_before(tmp_path)
    before = content(tmp_path)

    with stopped_flow(written(tmp_path), "A->B", tmp_path) as worker:
        answer: Any = worker.get("connectors", SOURCE_CONNECTOR, "status")
        assert "STOPPED" == answer["connector"]["state"]
        worker.request("PATCH", "connectors", SOURCE_CONNECTOR, "offsets", body=CHANGE)
        worker.request_dry_run("PATCH", "connectors", SOURCE_CONNECTOR, "offsets", body=CHANGE)

    assert before == content(tmp_path)
    first, second = changes.made
    assert first.startswith(f"{SOURCE_CONNECTOR}: 1 by ")
    assert second.endswith("dry run: True")


KILLED = """
import os, signal, sys
from pathlib import Path
from cli.test_mirror_offsets import CHANGE, Changes, without_kafka
from headrace.cli.mirror_offsets import stopped_flow
from headrace.mirror.dedicated import SOURCE_CONNECTOR
from headrace.worker import standalone

standalone.KafkaOpening.open = without_kafka(Changes())
with stopped_flow(Path(sys.argv[1]), "A->B", Path(sys.argv[2])) as worker:
    worker.request("PATCH", "connectors", SOURCE_CONNECTOR, "offsets", body=CHANGE)
    os.kill(os.getpid(), signal.SIGKILL)
"""


def test_a_command_that_is_killed_leaves_the_connectors_as_they_were(tmp_path: Path) -> None:
    """A flow whose connectors were left as stopped would not copy anything, and would not say so."""
    run_before(tmp_path)
    before = content(tmp_path)

    ended = subprocess.run(
        [sys.executable, "-c", KILLED, written(tmp_path), tmp_path],
        capture_output=True,
        text=True,
        check=False,
        timeout=180,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )

    assert -signal.SIGKILL == ended.returncode, ended.stderr
    assert before == content(tmp_path)


def test_no_one_else_can_call_the_worker_of_a_command(
    changes: Changes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It has no listener, so it needs none of the flow's logins."""
    listening = list[object]()
    monkeypatch.setattr("socket.socket.listen", lambda *given: listening.append(given))

    with stopped_flow(written(tmp_path), "A->B", tmp_path) as worker:
        names = worker.get("connectors")

    assert isinstance(names, list)
    assert SOURCE_CONNECTOR in names
    assert [] == listening


def test_an_unknown_connector_is_told_with_those_that_there_are(
    changes: Changes, tmp_path: Path
) -> None:
    """As by a worker that runs."""
    with (
        stopped_flow(written(tmp_path), "A->B", tmp_path) as worker,
        pytest.raises(WorkerError, match=SOURCE_CONNECTOR),
    ):
        worker.get("connectors", "MirorSourceConnector", "offsets")


def test_the_commands_of_offsets_call_it(shell: Shell, changes: Changes, tmp_path: Path) -> None:
    """With the form of the output that was asked for, and whatever HEADRACE_URL says."""
    given = ("--mirror", written(tmp_path), "--flow", "A->B", "--state", tmp_path)

    said = shell.done(
        "offsets", "set", *given, SOURCE_CONNECTOR, '{"topic": "t"}', '{"offset": 3}', "--json"
    )

    assert '"message": "done"' in said
    assert 1 == len(changes.made)


def test_a_state_folder_that_is_not_there_is_not_created(shell: Shell, tmp_path: Path) -> None:
    """In a new one nothing says whether the flow runs."""
    file, folder = written(tmp_path), tmp_path / "stats"

    said = shell.failed(
        "offsets", "show", "--mirror", file, "--flow", "A->B", "--state", folder, SOURCE_CONNECTOR
    )

    assert f"--state: The folder {folder} does not exist." in said
    assert not folder.exists()


def test_a_flow_that_runs_is_told_as_such(changes: Changes, tmp_path: Path) -> None:
    """With the process to stop; another state file would be of another flow."""
    run_before(tmp_path)
    path = state_file(tmp_path, "A->B")
    with (
        closing(SqliteStorage(path)),
        pytest.raises(ConfigError, match=f"process {os.getpid()}: the flow runs there") as raised,
        stopped_flow(written(tmp_path), "A->B", tmp_path),
    ):
        pass

    said = str(raised.value)
    assert said.startswith("The state file of the flow A->B has 1 problem:")
    assert "Stop 'headrace mirror'" in said
    assert "another file" not in said
