"""What a standalone worker is and has when it starts: its files, its state file, and a Java worker's offsets."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from cli.test_serving_command import Worker, worker
from waiting import until
from worker.test_java_offsets_import import java_file

pytestmark = pytest.mark.broker

CLASS = "org.apache.kafka.connect.file.FileStreamSourceConnector"


def config(name: str, folder: Path) -> dict[str, str]:
    """A connector that reads the file ``a``."""
    return {"name": name, "connector.class": CLASS, "file": "a", "topic": f"{folder.name}-{name}"}


def request_file(folder: Path, name: str, **more: object) -> str:
    """The body of a creation, as a file."""
    path = folder / f"{name}.json"
    path.write_text(json.dumps({"name": name, "config": config(name, folder), **more}))
    return str(path)


def positions(one: Worker, name: str) -> list[Any]:
    """Where the connector is."""
    found = one.request("GET", f"/connectors/{name}/offsets").json()["offsets"]
    return [each["offset"]["position"] for each in found]


def settings(bootstrap: str) -> dict[str, str]:
    """Those of every worker here."""
    return {"bootstrap_servers": bootstrap, "offset_storage_partitions": "1"}


def test_a_files_beginning_counts_when_it_creates_the_connector(
    bootstrap: str, tmp_path: Path
) -> None:
    """Afterwards the file is a configuration, and one log line says what is ignored."""
    given = [{"partition": {"filename": "a"}, "offset": {"position": 7}}]
    path = request_file(tmp_path, "c", initial_state="STOPPED", initial_offsets=given)
    altered = {"offsets": [{"partition": {"filename": "a"}, "offset": {"position": 9}}]}
    with worker(tmp_path, path, **settings(bootstrap)) as first:
        until(lambda: ["c"] == first.request("GET", "/connectors").json())
        assert [7] == positions(first, "c")
        assert 200 == first.request("PATCH", "/connectors/c/offsets", altered).status_code
        first.end(signal.SIGKILL)
    with worker(tmp_path, path, **settings(bootstrap)) as second:
        until(lambda: "is already stored" in second.log.read_text())
        assert [9] == positions(second, "c")
        state = second.request("GET", "/connectors/c/status").json()["connector"]["state"]
        assert "STOPPED" == state


@pytest.mark.slow
def test_a_java_workers_offsets_are_taken_over_once(bootstrap: str, tmp_path: Path) -> None:
    """Into the topic of the new worker; what is altered later stays so."""
    java = str(java_file(tmp_path, {"c": 7}))
    path = request_file(tmp_path, "c", initial_state="STOPPED")
    given = settings(bootstrap) | {"offset_storage_file_filename": java}
    with worker(tmp_path, path, **given) as first:
        until(lambda: ["c"] == first.request("GET", "/connectors").json())
        assert [7] == positions(first, "c")
        assert 200 == first.request("DELETE", "/connectors/c/offsets").status_code
        assert 143 == first.end(signal.SIGTERM)
    with worker(tmp_path, **given) as second:
        until(lambda: 200 == second.request("GET", "/health").status_code)
        assert [] == positions(second, "c")


def test_a_second_process_is_told_the_first_ones_pid(bootstrap: str, tmp_path: Path) -> None:
    """It ends at once and changes nothing."""
    with worker(tmp_path, **settings(bootstrap)) as first:
        command = [sys.executable, "-m", "headrace", "run", "worker.json"]
        ended = subprocess.run(
            command, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=60
        )
        assert ended.returncode
        assert f"is in use by the process {first.process.pid}." in ended.stderr
        assert "Traceback" not in ended.stderr
        assert first.process.poll() is None


@pytest.mark.parametrize("support", ["required", "REQUIRED"])
def test_required_exactly_once_is_checked(bootstrap: str, tmp_path: Path, support: str) -> None:
    """Kafka Connect's standalone worker lets it pass."""
    given = settings(bootstrap) | {"exactly_once_source_support": "disabled"}
    name = f"c-{os.getpid()}"
    with worker(tmp_path, **given) as one:
        body = {"name": name, "config": config(name, tmp_path) | {"exactly.once.support": support}}
        answer = one.request("POST", "/connectors", body)
        assert 400 == answer.status_code
        told = "This worker does not have exactly-once source support enabled."
        assert told in answer.json()["message"]
        assert "some records may be sent to Kafka again" in one.log.read_text()
