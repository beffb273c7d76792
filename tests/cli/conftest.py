"""A worker without Kafka behind a real socket, and the command line."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from headrace.cli.main import outcome
from headrace.connect.partition import SourcePartition
from headrace.herder.worker_herder import WorkerHerder
from headrace.rest.config import BASIC_AUTH, RestConfig
from headrace.rest.server import RestServer
from headrace.storage.memory import MemoryChangeStore, MemoryOffsetStore
from herder.stage import Stage, request
from offsets import changing
from waiting import until


@dataclass(frozen=True, kw_only=True)
class Worker:
    """Keeps everything in memory. It has a connector ``c``, and offsets are put and read by their file."""

    herder: WorkerHerder
    url: str
    stage: Stage
    kept: changing.Stage

    def put(self, **positions: int) -> None:
        """Have these offsets committed for ``c``."""
        self.kept.put({SourcePartition(file=file): {"at": at} for file, at in positions.items()})

    def known(self) -> Mapping[object, object]:
        """What is committed for ``c``."""
        return {each["file"]: offset["at"] for each, offset in self.kept.known().items()}

    def stop(self) -> None:
        """Stop ``c``, so that its offsets can be changed."""
        self.herder.stop("c")
        until(lambda: not self.stage.running)


@dataclass(frozen=True, kw_only=True)
class Ended:
    """How a command ended, and what it printed."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:  # noqa: ANN401 (tests know what it is)
        """What it printed for a program."""
        return json.loads(self.out)


@dataclass(frozen=True, kw_only=True)
class Shell:
    """Runs commands in this process, against the worker."""

    captured: pytest.CaptureFixture[str]

    def __call__(self, *arguments: object) -> Ended:
        """``headrace`` with these arguments."""
        self.captured.readouterr()
        code = outcome([str(each) for each in arguments])
        printed = self.captured.readouterr()
        return Ended(code=code, out=printed.out, err=printed.err)

    def done(self, *arguments: object) -> str:
        """What it prints, when it goes well."""
        ended = self(*arguments)
        assert (0, "") == (ended.code, ended.err)
        return ended.out

    def failed(self, *arguments: object, code: int = 1) -> str:
        """What it prints when it does not."""
        ended = self(*arguments)
        assert (code, "") == (ended.code, ended.out)
        return ended.err


@pytest.fixture(autouse=True)
def own_log() -> Iterator[None]:
    """What one test's command sets up of the log, secrets to be hidden above all, is not the next one's."""
    root = logging.getLogger()
    handlers, level = [*root.handlers], root.level
    yield
    root.handlers[:] = handlers
    root.setLevel(level)


@pytest.fixture
def worker(monkeypatch: pytest.MonkeyPatch) -> Iterator[Worker]:
    """A worker that answers at ``HEADRACE_URL``."""
    stage, offsets = Stage(), MemoryOffsetStore()
    kept = changing.Stage(
        changes_store=MemoryChangeStore(offsets, stage.configs),
        offsets=offsets,
        configs=stage.configs,
    )
    stage.changes = kept.changes()
    with stage.herder() as herder:
        herder.create(request())
        server = RestServer(herder, RestConfig.parse({"listeners": "http://127.0.0.1:0"}))
        server.start()
        monkeypatch.setenv("HEADRACE_URL", server.url)
        try:
            yield Worker(herder=herder, url=server.url, stage=stage, kept=kept)
        finally:
            server.close()


@pytest.fixture
def url_for_users(worker: Worker, tmp_path: Path) -> Iterator[str]:
    """Where *worker* answers only its user ``ann``, whose password is ``secret``; no slash is at the end."""
    users = tmp_path / "users"
    users.write_text("ann=secret\n")
    settings = {
        "listeners": "http://127.0.0.1:0",
        "rest.extension.classes": BASIC_AUTH,
        "rest.basic.auth.credentials.file": str(users),
    }
    with closing(RestServer(worker.herder, RestConfig.parse(settings))) as server:
        server.start()
        yield server.url.rstrip("/")


@pytest.fixture
def shell(worker: Worker, capsys: pytest.CaptureFixture[str]) -> Shell:
    """The command line."""
    return Shell(captured=capsys)
