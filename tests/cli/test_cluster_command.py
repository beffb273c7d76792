"""`headrace cluster`: a broker and workers that outlive the command, found again by their folder."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import httpx
import pytest
from click.testing import CliRunner

from headrace.cli.cluster import ClusterWorker, cluster
from waiting import until


def done(*arguments: str, code: int = 0) -> str:
    """What the command says, which ends with *code*."""
    result = CliRunner().invoke(cluster, arguments)
    assert result.exit_code == code, result.output
    return result.output


def started(*arguments: str) -> str:
    """What a process of its own says, whose workers outlive it."""
    command = [sys.executable, "-m", "headrace", "cluster", "start", *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True, timeout=200).stdout


def test_a_folder_without_a_cluster_has_none(tmp_path: Path) -> None:
    """As a service that does not run."""
    assert f"No cluster runs on {tmp_path}." in done("status", "--data", str(tmp_path), code=3)
    assert "The cluster does not run." in done("stop", "--data", str(tmp_path))


def test_a_setting_is_a_key_and_a_value(tmp_path: Path) -> None:
    """Before anything is started."""
    result = done("start", "--data", str(tmp_path), "--property", "slots", code=2)
    assert "'slots' is not KEY=VALUE" in result
    assert [] == list(tmp_path.iterdir())


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

        started(*data, "--workers", "1")
        assert ["c"] == httpx.get(f"{first.url}/connectors", timeout=60).json()
        assert json.loads((folder / "worker-1" / "process.json").read_text())["pid"]
    finally:
        done("stop", *data)
