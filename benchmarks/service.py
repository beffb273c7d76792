"""A worker as a service: started, called over HTTP, ended, killed."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Final, Self

import httpx

from benchmarks.contender import ROOT, BenchmarkError, end_all, tail
from benchmarks.headrace_worker import STRING
from benchmarks.process_tree import PAGE_BYTES, TICKS_PER_SECOND, read_tree, shared_bytes
from headrace.pids import Stat, read_stat

_LOOK_SECONDS: Final = 0.01
_START_SECONDS: Final = 60.0
_REQUEST_SECONDS: Final = 60.0
_ANSWERS = re.compile(r"Requests are answered at (http://[^\s/]+)/")
HEADRACE: Final = ("-m", "headrace")


class Service:
    """A worker with its configuration and its log in *folder*, started on entry and ended on exit.

    *command* are Python's arguments before the configuration. Another service in the same folder continues with its connectors.
    *began* is when its process was launched, in seconds since the epoch, and *url* where it answers. One thread owns it.
    """

    def __init__(self, folder: Path, settings: Mapping[str, str], command: Sequence[str]) -> None:
        self._folder = folder
        self._log = folder / "output.log"
        self._command = command
        self._settings = {
            "key.converter": STRING,
            "value.converter": STRING,
            "listeners": "http://127.0.0.1:0",
            **settings,
        }
        self.began = 0.0
        self.url = ""

    def __enter__(self) -> Self:
        self.start()
        return self

    def start(self) -> None:
        """Launch it, again if it has ended; returns when it answers requests."""
        config = self._folder / "worker.json"
        config.write_text(json.dumps(self._settings))
        self._log.unlink(missing_ok=True)
        self.began = time.time()
        with self._log.open("wb") as output:
            self._process = subprocess.Popen(
                [sys.executable, *self._command, str(config)],
                cwd=ROOT,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        try:
            self.url = self._found_url()
        except BaseException:
            self.kill()
            raise
        self._client = httpx.Client(base_url=self.url, timeout=_REQUEST_SECONDS)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.end()

    def end(self) -> None:
        """SIGTERM, if it still runs; returns when it has ended."""
        self._client.close()
        end_all([self._process])

    def request(self, method: str, path: str, body: object = None) -> httpx.Response:
        """The answer; raises BenchmarkError for any but a success."""
        answer = self._client.request(method, path, json=body)
        if not answer.is_success:
            raise BenchmarkError(f"{method} {path}: {answer.status_code} {answer.text}")
        return answer

    def create(self, name: str, config: Mapping[str, str], *, state: str = "RUNNING") -> None:
        """Create a connector."""
        self.request(
            "POST", "/connectors", {"name": name, "config": config, "initial_state": state}
        )

    def kill(self) -> None:
        """SIGKILL for the worker and its JVM."""
        os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()

    @property
    def is_alive(self) -> bool:
        """Whether its process runs."""
        return self._process.poll() is None

    def told(self) -> str:
        """What it has logged since it was launched."""
        return self._log.read_text(errors="replace")

    def cpu_seconds(self) -> Mapping[int, float]:
        """User and system time so far, by process."""
        return {each.pid: each.ticks / TICKS_PER_SECOND for each in self._stats()}

    def rss_bytes(self) -> int:
        """The memory of all processes; what they share counts for each."""
        return sum(each.rss_pages for each in self._stats()) * PAGE_BYTES

    def own_bytes(self) -> Mapping[int, int]:
        """The memory of each process; of what some share, each has its part."""
        return {
            each.pid: each.rss_pages * PAGE_BYTES - shared_bytes(each.pid) for each in self._stats()
        }

    def until(self, condition: Callable[[], bool], *, seconds: float, what: str) -> None:
        """Return when *condition* is true; raises BenchmarkError, with the log's end, when it does not become true."""
        deadline = time.monotonic() + seconds
        while not condition():
            if self._process.poll() is not None or time.monotonic() > deadline:
                raise BenchmarkError(f"{what} has not happened.\n{tail(self._log)}")
            time.sleep(_LOOK_SECONDS)

    def _found_url(self) -> str:
        def found() -> re.Match[str] | None:
            return _ANSWERS.search(self.told())

        self.until(lambda: found() is not None, seconds=_START_SECONDS, what="The worker's start")
        match = found()
        assert match is not None
        return match[1]

    def _stats(self) -> list[Stat]:
        members = read_tree([self._process.pid])
        return [stat for stat in map(read_stat, members) if stat is not None]


def alone(
    folder: Path, bootstrap: str, *, command: Sequence[str] = HEADRACE, **settings: str
) -> Service:
    """``headrace run`` with a state file in *folder*; *command* stands for ``headrace``."""
    return Service(
        folder,
        {
            "bootstrap.servers": bootstrap,
            "group.id": folder.name,
            "state.file": str(folder / "state.db"),
            **{key.replace("_", "."): value for key, value in settings.items()},
        },
        (*command, "run"),
    )
