"""`headrace broker` as people type it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from headrace.broker import Broker
from headrace.broker.folder import BrokerState, write_state
from headrace.cli.main import commands


def typed(*arguments: str) -> Result:
    """What the command line does with *arguments*."""
    return CliRunner().invoke(commands, arguments)


def test_status_of_nothing(tmp_path: Path):
    """Where nothing runs, status reports that and exits with 3, and stop is no error."""
    status = typed("broker", "status", "--data", str(tmp_path))
    stop = typed("broker", "stop", "--data", str(tmp_path))

    assert (3, 0) == (status.exit_code, stop.exit_code)
    assert f"No broker runs on {tmp_path}." in status.output


def test_property_without_value():
    """A property that is not KEY=VALUE is a mistake in the command line."""
    result = typed("broker", "start", "--property", "num.partitions")

    assert 2 == result.exit_code
    assert "'num.partitions' is not KEY=VALUE." in result.output


@pytest.mark.parametrize(
    ("given", "port"), [((), 27_689), (("--port", "5"), 5), (("--port", "0"), 0)]
)
def test_a_folder_keeps_its_port(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, given: tuple[str, ...], port: int
):
    """Unless another one is given, so that a start is repeated without it."""
    before = BrokerState(pid=0, identity="", port=27_689, controller_port=1, log_file="")
    write_state(tmp_path, before)
    made: list[int] = []
    monkeypatch.setattr(Broker, "start", lambda self, **_: made.append(self._wanted_port))

    typed("broker", "start", "--data", str(tmp_path), *given)

    assert [port] == made


def test_a_new_folder_has_the_usual_port(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Where clients look by default."""
    made: list[int] = []
    monkeypatch.setattr(Broker, "start", lambda self, **_: made.append(self._wanted_port))

    typed("broker", "start", "--data", str(tmp_path))

    assert [9092] == made


def outside(*arguments: str) -> str:
    """What the command prints as a program of its own, which ends while the broker keeps running."""
    command = [sys.executable, "-m", "headrace", "broker", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


@pytest.mark.broker
def test_start_and_stop(tmp_path: Path):
    """It keeps running after start has returned, is found again, and stops."""
    folder = tmp_path / "a broker"
    try:
        outside("start", "--data", str(folder), "--port", "0")
        again = outside("start", "--data", str(folder))
        stopped = outside("stop", "--data", str(folder))
    finally:
        left = Broker(folder).stop()

    assert "is already running" in again
    assert "The broker is stopped.\n" == stopped
    assert not left
