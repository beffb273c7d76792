"""`headrace run` as a service, while its broker is away: what is requested is kept, and nothing runs."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx

from waiting import until

WORKER = {
    "bootstrap.servers": "127.0.0.1:9",
    "key.converter": "string",
    "value.converter": "string",
    "state.file": "state.db",
    "listeners": "http://127.0.0.1:0",
}
CONFIG = {"connector.class": "files", "topic": "t", "files.path": "in/*.log"}


@dataclass(frozen=True)
class Worker:
    """A process that answers at *url*."""

    process: subprocess.Popen[bytes]
    log: Path
    url: str

    def request(self, method: str, path: str, body: object = None) -> httpx.Response:
        """Send a request."""
        return httpx.request(method, f"{self.url}{path}", json=body, timeout=60)

    def end(self, number: int) -> int:
        """Send a signal; the exit code."""
        self.process.send_signal(number)
        return self.process.wait(20)


@contextmanager
def worker(folder: Path, *arguments: str, **settings: str) -> Iterator[Worker]:
    """A worker in *folder*, killed at the end."""
    config, log = folder / "worker.json", folder / "log"
    given = {key.replace("_", "."): value for key, value in settings.items()}
    config.write_text(json.dumps(WORKER | given))
    command = [sys.executable, "-m", "headrace", "run", str(config), *arguments]
    with log.open("w") as stream:
        process = subprocess.Popen(command, stderr=stream, cwd=folder)
    try:
        answers = re.compile(r"Requests are answered at (http://\S+)/ ")
        until(lambda: answers.search(log.read_text()) or process.poll() is not None, seconds=60)
        found = answers.search(log.read_text())
        assert found, log.read_text()
        yield Worker(process=process, log=log, url=found[1])
    finally:
        process.kill()
        process.wait()


def connector_file(folder: Path, name: str, **more: object) -> str:
    """A connector's file."""
    path = folder / f"{name}.json"
    path.write_text(json.dumps({"name": name, "config": CONFIG, **more}))
    return str(path)


def test_requests_are_answered_while_the_broker_is_away(tmp_path: Path) -> None:
    """The health shows that the worker is starting; SIGTERM ends it all the same."""
    with worker(tmp_path) as one:
        health = one.request("GET", "/health")
        assert (503, "starting") == (health.status_code, health.json()["status"])
        assert one.request("GET", "/").json()["kafka_cluster_id"] is None
        created = one.request("POST", "/connectors", {"name": "c", "config": CONFIG})
        assert 201 == created.status_code
        status = one.request("GET", "/connectors/c/status").json()
        assert "UNASSIGNED" == status["connector"]["state"]
        assert one.url == f"http://{status['connector']['worker_id']}"

        assert 143 == one.end(signal.SIGTERM)
        assert "Traceback" not in one.log.read_text()


def test_every_listener_is_reported_with_its_port(tmp_path: Path) -> None:
    """Also those that took a free one, and those of administrators."""
    free = {
        "listeners": "http://127.0.0.1:0,http://127.0.0.2:0",
        "admin_listeners": "http://127.0.0.3:0",
    }
    shown = re.compile(r"are answered at (http://127\.0\.0\.\d:\d+/) ")
    with worker(tmp_path, **free) as one:
        until(lambda: len(shown.findall(one.log.read_text())) == 3)
        first, second, admin = shown.findall(one.log.read_text())

        assert 200 == httpx.get(f"{first}connectors").status_code
        assert 200 == httpx.get(f"{second}connectors").status_code
        assert 200 == httpx.get(f"{admin}admin/loggers").status_code


def test_what_was_asked_for_survives_a_kill(tmp_path: Path) -> None:
    """Files that are given again change configurations only, and say what they leave alone."""
    given = connector_file(tmp_path, "c", initial_state="STOPPED")
    with worker(tmp_path, given) as first:
        until(lambda: ["c"] == first.request("GET", "/connectors").json())
        first.request(
            "POST", "/connectors", {"name": "d", "config": CONFIG, "initial_state": "PAUSED"}
        )
        first.request("PUT", "/connectors/c/pause")
        first.end(signal.SIGKILL)
    with worker(tmp_path, given, "--only-files") as second:
        until(lambda: "is already stored" in second.log.read_text())
        answer = second.request("GET", "/connectors?expand=status").json()

        states = {name: each["status"]["connector"]["state"] for name, each in answer.items()}
        assert {"c": "PAUSED", "d": "PAUSED"} == states


def test_a_second_worker_of_the_same_file_gets_the_first_one_s_pid(tmp_path: Path) -> None:
    """Though its port is taken as well."""
    with worker(tmp_path) as one:
        port = one.url.rpartition(":")[2]
        config = tmp_path / "second.json"
        config.write_text(json.dumps(WORKER | {"listeners": f"http://127.0.0.1:{port}"}))
        command = [sys.executable, "-m", "headrace", "run", str(config)]
        ended = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path)

        assert f"is in use by the process {one.process.pid}." in ended.stderr
        assert 0 != ended.returncode


def test_a_broker_that_never_comes_ends_the_worker(tmp_path: Path) -> None:
    """With 1 and the reason, once the start's deadline is over."""
    with worker(tmp_path, headrace_start_deadline_ms="500") as one:
        assert 1 == one.process.wait(30)
        assert "Tried for 0.5 s (headrace.start.deadline.ms)." in one.log.read_text()
        assert "Traceback" not in one.log.read_text()


def test_once_needs_connectors(tmp_path: Path) -> None:
    """There is no one who could request one."""
    path = tmp_path / "worker.json"
    path.write_text(json.dumps(WORKER))
    command = [sys.executable, "-m", "headrace", "run", "--once", str(path)]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)

    assert 2 == ended.returncode
    assert "Missing argument 'CONNECTOR_CONFIGS...'" in ended.stderr
