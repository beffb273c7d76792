"""``headrace.run`` on a session of somebody else's."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest

import headrace
from doubles.thread_engine import ThreadEngine
from headrace import embedded
from headrace.config.state_file import new_identity
from headrace.config.worker_config import WorkerConfig
from headrace.connect.errors import TaskFailedError


def test_a_session_with_fewer_cores_than_slots_is_refused(tmp_path: Path) -> None:
    """Before anything starts; the worker's own spark.master has no effect and is not looked at."""
    session = SimpleNamespace(conf={"spark.master": "local[1]"})
    worker = {"key.converter": "string", "value.converter": "string", "spark.master": "local"}

    with pytest.raises(TaskFailedError, match=r"session is too small.*lower headrace\.slots to 1"):
        headrace.run(worker, [], state_file=tmp_path / "state.db", spark=session)  # type: ignore[arg-type]


def test_a_session_that_has_ended_is_refused(tmp_path: Path) -> None:
    """With what to do, in one sentence."""

    def get(key: str, default: object) -> str:
        raise ConnectionRefusedError(111, "Connection refused")

    session = SimpleNamespace(conf=SimpleNamespace(get=get))
    worker = {"key.converter": "string", "value.converter": "string"}

    with pytest.raises(
        TaskFailedError, match=r"does not answer: .*refused. Pass a running session"
    ):
        headrace.run(worker, [], state_file=tmp_path / "state.db", spark=session)  # type: ignore[arg-type]


def test_a_program_gets_no_advice_about_a_configuration_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It has none; its state file is where the program says."""
    monkeypatch.chdir(tmp_path)
    begun = list[str]()

    def running(config: WorkerConfig, _: object, *, state_file: Path, **_more: object) -> None:
        begun.append(new_identity(config, "g", state_file))
        raise TaskFailedError("That is all.")

    monkeypatch.setattr(embedded, "running", running)
    monkeypatch.setattr(embedded, "spark_engine", lambda *_: ThreadEngine())
    with pytest.raises(TaskFailedError, match="That is all"):
        headrace.run(
            {"key.converter": "string", "value.converter": "string"}, [], state_file="s.db"
        )

    [message] = begun
    assert message.endswith("uses group.id=g, and has no source offsets yet.")
