"""`headrace cluster`: a broker and workers that outlive the command, found again by their folder."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from dataclasses import asdict, replace
from pathlib import Path

import httpx
import pytest
from click.testing import CliRunner

from headrace.broker import BrokerState
from headrace.broker.folder import write_state
from headrace.cli.cluster import ClusterWorker, Process, cluster
from headrace.config.properties_file import parsed_properties
from headrace.connect.errors import ConnectError
from headrace.pids import identity_of
from headrace.rest.config import RestConfig
from headrace.rest.server import RestServer
from rest.fake_herder import FakeHerder
from waiting import until


def done(*arguments: str, code: int = 0) -> str:
    """What the command says, which ends with *code*."""
    result = CliRunner().invoke(cluster, arguments)
    assert result.exit_code == code, result.output
    return result.output


def started(*arguments: str, code: int = 0) -> str:
    """What a process of its own says, which ends with *code*; its workers outlive it."""
    command = [sys.executable, "-m", "headrace", "cluster", "start", *arguments]
    ran = subprocess.run(command, check=False, capture_output=True, text=True, timeout=200)
    assert code == ran.returncode, ran.stderr
    return ran.stdout + ran.stderr


def test_a_folder_without_a_cluster_has_none(tmp_path: Path) -> None:
    """As a service that does not run."""
    assert f"No cluster runs on {tmp_path}." in done("status", "--data", str(tmp_path), code=3)
    assert "The cluster does not run." in done("stop", "--data", str(tmp_path))


def test_a_setting_is_a_key_and_a_value(tmp_path: Path) -> None:
    """Before anything is started."""
    result = done("start", "--data", str(tmp_path), "--property", "slots", code=2)
    assert "'slots' is not KEY=VALUE" in result
    assert [] == list(tmp_path.iterdir())


@pytest.fixture
def begun(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ClusterWorker]:
    """A worker in a folder that is given relative to the working directory; what runs of it is ended."""
    monkeypatch.chdir(tmp_path)
    worker = ClusterWorker(Path("cl"), 1)
    yield worker
    worker.kill()


def begin(**options: object) -> None:
    """Start the worker in a process of its own, which the worker outlives, without a broker."""
    program = "import json, sys; from pathlib import Path; from headrace.cli.cluster import ClusterWorker; "
    program += "ClusterWorker(Path('cl'), 1).start('127.0.0.1:1', **json.loads(sys.argv[1]))"
    subprocess.run([sys.executable, "-c", program, json.dumps(options)], check=True, timeout=60)


def _is_process(worker: ClusterWorker, process: Process) -> None:
    state = worker.config.with_name("process.json")
    state.parent.mkdir(parents=True, exist_ok=True)
    state.write_text(json.dumps(asdict(process)))


def test_a_folder_may_be_relative(begun: ClusterWorker) -> None:
    """The worker has a working directory of its own, and finds its file: it ends because of what is in it."""
    begin(settings={"headrace.slots": "0"})
    until(lambda: not begun.is_running)

    assert "headrace.slots" in begun.log.read_text()
    with pytest.raises(ConnectError, match=str(begun.log)):
        begun.is_ready()


def test_settings_of_a_worker_are_kept_once_it_answered(begun: ClusterWorker) -> None:
    """Its next start has them, and those that are given then; one that failed leaves none, and a fresh one has only its own."""
    me = Process(pid=os.getpid(), identity=identity_of(os.getpid()) or "", port=0)
    given = {"headrace.slots": "3", "session.timeout.ms": "7000"}
    with closing(
        RestServer(FakeHerder(), RestConfig.parse({"listeners": "http://127.0.0.1:0"}))
    ) as server:
        server.start()
        port = int(server.url.rstrip("/").rpartition(":")[2])
        _is_process(begun, replace(me, port=port, given=given))
        assert begun.is_ready()
    assert begun.process is not None
    _is_process(begun, replace(begun.process, identity="gone"))

    failing = {"headrace.slots": "0"}
    begin(settings=failing)
    assert {**given, **failing}.items() <= parsed_properties(begun.config.read_bytes()).items()
    begun.kill()
    begin(settings={"request.timeout.ms": "4"})
    later = parsed_properties(begun.config.read_bytes())
    assert {**given, "request.timeout.ms": "4"}.items() <= later.items()
    begun.kill()
    begin(settings={}, fresh=True)
    assert "session.timeout.ms" not in parsed_properties(begun.config.read_bytes())


def test_only_workers_folders_are_workers(tmp_path: Path) -> None:
    """Whatever else is there, such as a copy that someone has made of one."""
    for each in ("worker-10", "worker-2", "worker-2.bak", "worker-", "worker-0x"):
        (tmp_path / each).mkdir()

    assert ["worker-2", "worker-10"] == [each.name for each in ClusterWorker.every(tmp_path)]


def test_an_url_is_suggested_at_which_a_worker_answers(tmp_path: Path) -> None:
    """Not that of one that has ended."""
    broker = BrokerState(pid=0, identity="", port=9, controller_port=8, log_file="")
    (tmp_path / "broker").mkdir()
    write_state(tmp_path / "broker", broker)
    me = Process(pid=os.getpid(), identity=identity_of(os.getpid()) or "", port=2)
    _is_process(ClusterWorker(tmp_path, 1), replace(me, port=1, identity="gone"))
    _is_process(ClusterWorker(tmp_path, 2), me)

    told = done("status", "--data", str(tmp_path))

    assert "workers list --url http://127.0.0.1:2\n" in told
    assert "--url http://127.0.0.1:1\n" not in told


@pytest.mark.broker
@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.timeout(400)
def test_a_cluster_is_started_stopped_and_started_again(tmp_path: Path) -> None:
    """Two workers begin at the same moment, and share what none of them had before."""
    folder = tmp_path / "my cluster"
    data = ("--data", str(folder))
    try:
        said = started(*data, "--workers", "2", "--property", "headrace.slots=1")
        assert "worker-2  runs" in said
        first, second = ClusterWorker.every(folder)
        config = {
            "connector.class": "FileStreamSource",
            "file": str(tmp_path / "none"),
            "topic": "t",
        }
        body = {"name": "c", "config": config}
        httpx.post(f"{second.url}/connectors", json=body, timeout=60).raise_for_status()
        workers = httpx.get(f"{first.url}/admin/workers", timeout=60).json()
        assert [1, 1] == [each["slots"] for each in workers]
        assert "worker-1  runs" in done("status", *data)
        first.kill()
        until(lambda: not first.is_running)
        assert "worker-1  has ended" in done("status", *data)
        assert "stop it before it is started with --fresh" in done(
            "start", *data, "--fresh", code=2
        )
        done("stop", *data)
        done("status", *data, code=3)

        failed = started(*data, "--workers", "1", "--property", "headrace.slots=0", code=1)
        assert f"(the broker); to end it: headrace cluster stop --data '{folder}'" in failed

        started(*data, "--workers", "1")
        workers = httpx.get(f"{first.url}/admin/workers", timeout=60).json()
        assert [1] == [each["slots"] for each in workers]
        assert ["c"] == httpx.get(f"{first.url}/connectors", timeout=60).json()
        assert json.loads((folder / "worker-1" / "process.json").read_text())["pid"]
    finally:
        done("stop", *data)
