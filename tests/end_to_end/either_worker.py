"""A worker of a group in a process of its own, of Kafka Connect or ours, with the same properties file."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx

from end_to_end import dying_worker
from headrace.broker.broker import free_port
from headrace.broker.folder import as_text
from judges.connect_worker import java_command
from waiting import until

_MAIN = "org.apache.kafka.connect.cli.ConnectDistributed"
# Java's start and a session that has to end take most of it.
SECONDS = 120.0
_END_SECONDS = 40.0


@dataclass(frozen=True)
class RunningWorker:
    """A process, and who asks it."""

    process: subprocess.Popen[bytes]
    log: Path
    http: httpx.Client
    is_java: bool

    def get(self, path: str) -> Any:  # noqa: ANN401 (whatever it answers)
        """What it answers; ``None`` where that is an error, as while it starts or rebalances."""
        assert self.process.poll() is None, f"The worker has ended:\n{self.log.read_text()}"
        try:
            answer = self.http.get(path)
        except httpx.TransportError:
            return None
        return answer.json() if answer.is_success else None

    def request(self, method: str, path: str, body: object = None) -> None:
        """Have it take a request, which it refuses while it starts or rebalances."""

        def taken() -> bool:
            self.get("/")
            try:
                answer = self.http.request(method, path, json=body)
            except httpx.TransportError:
                return False
            assert answer.is_success or answer.status_code in (404, 409, 500), answer.text
            return answer.is_success

        self.wait_for(taken)

    def wait_for(self, condition: Callable[[], object]) -> None:
        """Return when *condition* is true; fails with the worker's log when it is not within :data:`SECONDS`."""
        try:
            until(condition, seconds=SECONDS)
        except AssertionError as error:
            raise AssertionError(f"{error}\n{self.log.read_text()[-6000:]}") from error

    def states(self, name: str) -> list[str]:
        """The state of the connector *name*, and those of its tasks."""
        found = self.get(f"/connectors/{name}/status")
        return [] if found is None else [each["state"] for each in _parts(found)]

    def traces(self, name: str) -> str:
        """Why it has failed."""
        found = self.get(f"/connectors/{name}/status") or {"connector": {}, "tasks": []}
        return "\n".join(each.get("trace") or "" for each in _parts(found))

    def position(self, name: str) -> int:
        """Where in its file the connector has committed."""
        found = (self.get(f"/connectors/{name}/offsets") or {}).get("offsets")
        return found[0]["offset"]["position"] if found else 0

    def end(self, number: signal.Signals) -> None:
        """Send the signal, and wait for the end."""
        self.process.send_signal(number)
        try:
            self.process.wait(_END_SECONDS)
        except subprocess.TimeoutExpired:
            # Jetty and the herder are closed side by side there, and now and then wait for each other for ever.
            if not self.is_java:
                raise
            self.process.kill()
            self.process.wait()


def _parts(status: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    return [status["connector"], *status["tasks"]]


@dataclass
class Workers:
    """Both kinds, one after the other, with the file of *settings* in *folder*."""

    folder: Path
    settings: Mapping[str, str]
    _count: int = 0
    port: int = field(default_factory=lambda: free_port(choices=random.SystemRandom()))

    def __post_init__(self) -> None:
        plugins = self.folder / "plugins"
        plugins.mkdir(parents=True)
        self.address = f"http://127.0.0.1:{self.port}"
        self.file = self.folder / "worker.properties"
        own = {
            "listeners": self.address,
            # The connectors' jar is on the class path, with all the others.
            "plugin.path": str(plugins),
            "plugin.discovery": "service_load",
        }
        self.file.write_text(as_text({**self.settings, **own}))

    @contextmanager
    def java(self) -> Generator[RunningWorker]:
        """Kafka Connect's, killed at the end unless it has ended."""
        with self._running([*java_command(self.folder), _MAIN, str(self.file)]) as worker:
            yield worker

    @contextmanager
    def ours(self) -> Generator[RunningWorker]:
        """Ours, killed at the end unless it has ended."""
        command = [sys.executable, dying_worker.__file__, "worker", str(self.file)]
        with self._running(command) as worker:
            yield worker

    def checked(self) -> dict[str, Any]:
        """What `headrace takeover --check` says."""
        return self._takeover("--check")

    def settle(self) -> None:
        """Have `headrace takeover --settle` write what a Java worker would not find."""
        self._takeover("--settle")

    def _takeover(self, what: str) -> dict[str, Any]:
        command = [sys.executable, "-m", "headrace", "takeover", what, "--json"]
        done = subprocess.run([*command, str(self.file)], capture_output=True, check=False)
        assert done.returncode in (0, 1), done.stderr.decode()
        return json.loads(done.stdout)

    @contextmanager
    def _running(self, command: list[str]) -> Generator[RunningWorker]:
        self._count += 1
        log = self.folder / f"output-{self._count}.log"
        with log.open("wb") as output:
            process = subprocess.Popen(
                command,
                stdout=output,
                stderr=subprocess.STDOUT,
                # There is no such file, so ours does not end itself.
                env={**os.environ, dying_worker.CHOSEN: str(self.folder / "never")},
            )
        try:
            with httpx.Client(base_url=self.address, timeout=60) as http:
                yield RunningWorker(process, log, http, is_java=_MAIN in command)
        finally:
            process.kill()
            process.wait()
