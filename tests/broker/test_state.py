"""What is remembered of a broker."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest

from headrace.broker.folder import STATE_FILE, BrokerState, read_state, write_state
from headrace.connect.errors import ConnectError
from headrace.pids import identity_of

ME = BrokerState(
    pid=os.getpid(),
    identity=identity_of(os.getpid()) or "",
    port=9092,
    controller_port=9093,
    log_file="/x",
)


def test_round_trip(tmp_path: Path):
    """What is written is read again."""
    write_state(tmp_path, ME)

    assert ME == read_state(tmp_path)


def test_nothing_there(tmp_path: Path):
    """A folder without state is no error."""
    assert read_state(tmp_path) is None


def test_garbage(tmp_path: Path):
    """A file that is no state is named, with what to do."""
    (tmp_path / STATE_FILE).write_text("{")

    with pytest.raises(ConnectError, match="Remove it when no broker runs"):
        read_state(tmp_path)


def test_reused_pid_is_not_running():
    """A pid that another process has now is not our broker."""
    assert ME.is_running
    assert not replace(ME, identity="that of another one").is_running
