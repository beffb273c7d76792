"""A worker that dies at any of its writes leaves the old state or the new one."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from headrace.connect.errors import ConnectError, RetriableError
from headrace.herder.answers import TargetState
from headrace.herder.worker_herder import WorkerHerder
from headrace.storage.sqlite_file import SqliteFile, Statement
from herder.stage import Stage, config, request, sqlite_stage
from waiting import until

# More than any of these changes writes.
MOST_WRITES = 14

Seen = tuple[TargetState, str] | None


def put(herder: WorkerHerder) -> None:
    """Another configuration."""
    herder.put_config("c", {**config(), "tasks.max": "1"})


CHANGES: dict[str, tuple[Callable[[WorkerHerder], object], Seen, Seen]] = {
    "create": (lambda herder: herder.create(request()), None, (TargetState.RUNNING, "2")),
    "put": (put, (TargetState.RUNNING, "2"), (TargetState.RUNNING, "1")),
    "pause": (
        lambda herder: herder.pause("c"),
        (TargetState.RUNNING, "2"),
        (TargetState.PAUSED, "2"),
    ),
    "stop": (
        lambda herder: herder.stop("c"),
        (TargetState.RUNNING, "2"),
        (TargetState.STOPPED, "2"),
    ),
    "delete": (lambda herder: herder.delete("c"), (TargetState.RUNNING, "2"), None),
}


class Disk:
    """Takes so many writes and then none, as when the process is gone."""

    def __init__(self, left: int, monkeypatch: pytest.MonkeyPatch) -> None:
        self.left = left
        self._write = SqliteFile.write

        def write(file: SqliteFile, *statements: Statement) -> None:
            self.write(file, *statements)

        monkeypatch.setattr(SqliteFile, "write", write)

    def write(self, file: SqliteFile, *statements: Statement) -> None:
        """As the file does, while it may."""
        if self.left <= 0:
            raise RetriableError("The process is gone.")
        self.left -= 1
        self._write(file, *statements)


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("writes", range(MOST_WRITES))
def test_after_a_death_it_is_as_before_or_as_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: str, writes: int
) -> None:
    """And the next process brings the connector to the state that is stored."""
    act, before, after = CHANGES[change]
    with sqlite_stage(tmp_path / "s.db") as stage, stage.herder() as herder:
        if before is not None:
            herder.create(request())
            until(lambda: len(herder.tasks("c")) == 2)
        with monkeypatch.context() as dying:
            Disk(writes, dying)
            with suppress(ConnectError):
                act(herder)
            herder.health()

    with sqlite_stage(tmp_path / "s.db") as stage, stage.herder() as herder:
        found = _seen(stage)
        assert found in (before, after)
        if found is None:
            assert {} == stage.states()
            return
        state, tasks = found
        until(lambda: stage.states()[None] == state.value)
        if state is TargetState.RUNNING:
            until(lambda: len(herder.tasks("c")) == int(tasks))


def _seen(stage: Stage) -> Seen:
    stored = stage.configs.connector("c")
    if stored is None:
        return None
    return TargetState(stored.target_state), str(stored.config["tasks.max"])
