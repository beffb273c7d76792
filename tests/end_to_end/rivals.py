"""Two workers with state files of their own that run the same connectors in one group, each a process of its own."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from urllib.request import urlopen

from end_to_end import rival_worker
from end_to_end.scene import SENDERS
from headrace.pids import read_stat
from headrace.storage.sqlite import SqliteStorage
from headrace.testing.judge import Verdict, committed_ends, judged
from waiting import until

_ANSWERS = re.compile(r"Requests are answered at (http://\S+)/ ")
CAUSE = "Another worker with group.id"
ADVICE = "Run the connector in one worker only"
# Looking costs more than waiting.
_LOOK_SECONDS = 0.2
# Two minutes are what Spark's start takes on a machine that does a dozen other things.
_PATIENCE_SECONDS = 240.0
LEASE_SECONDS, TRANSACTION_SECONDS = 2, 4


@dataclass
class Shared:
    """What both workers have: the group, the connectors, and the folder of what these read."""

    bootstrap: str
    folder: Path
    name: str
    connectors: dict[str, Mapping[str, str]] = field(default_factory=dict)
    lines: dict[str, list[bytes]] = field(default_factory=dict)
    """What is to be in each topic, which has the name of its connector."""

    def add_files(self, *, tasks: int = 2, files: int = 2, **settings: str) -> str:
        """A connector that reads *files*, which are empty yet; its name."""
        name = f"{self.name}-{len(self.connectors)}"
        source = self._source(name)
        for number in range(files):
            (source / f"{number}.txt").touch()
        return self._add(
            name,
            {
                "connector.class": "files",
                "files.path": str(source),
                "files.format": "lines",
                "files.min.age.ms": "0",
                "tasks.max": str(tasks),
                **_dotted(settings),
            },
        )

    def add_stream(self, **settings: str) -> str:
        """A connector that follows one file, polling it; its name."""
        name = f"{self.name}-{len(self.connectors)}"
        file = self._source(name) / "0.txt"
        file.touch()
        return self._add(
            name, {"connector.class": "FileStreamSource", "file": str(file), **_dotted(settings)}
        )

    def write(self, name: str, count: int) -> None:
        """Append *count* lines of their own to each file of connector *name*."""
        for file in sorted(self._source(name).iterdir()):
            first = sum(each.startswith(f"{file.stem} ".encode()) for each in self.lines[name])
            lines = [b"%s %d" % (file.stem.encode(), first + each) for each in range(count)]
            with file.open("ab") as stream:
                stream.write(b"".join(line + b"\n" for line in lines))
            self.lines[name] += lines

    def verdicts(self) -> dict[str, Verdict]:
        """What another client library finds in the topic of each connector."""
        return {name: judged(self.bootstrap, name, lines) for name, lines in self.lines.items()}

    def wrong(self) -> dict[str, Verdict]:
        """Those that are not exactly once."""
        return {name: each for name, each in self.verdicts().items() if not each.exactly_once}

    def _add(self, name: str, config: Mapping[str, str]) -> str:
        sender = SENDERS[len(self.connectors) % 2]
        self.connectors[name] = {
            "name": name,
            "topic": name,
            "headrace.sender": sender,
            **config,
        }
        self.lines[name] = []
        return name

    def _source(self, name: str) -> Path:
        folder = self.folder / "in" / name
        folder.mkdir(parents=True, exist_ok=True)
        return folder


@dataclass
class Rival:
    """One worker of *shared*, in a folder of its own."""

    shared: Shared
    name: str
    worker: Mapping[str, str] = field(default_factory=dict)
    environment: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._folder = self.shared.folder / self.name
        self._folder.mkdir()
        self._log = self._folder / "log"
        self._process: subprocess.Popen[bytes] | None = None

    def start(self, *arguments: str) -> None:
        """Start it; returns at once."""
        paths = [self._written("worker", self._worker_props())]
        paths += [self._written(name, each) for name, each in self.shared.connectors.items()]
        command = [sys.executable, rival_worker.__file__, "run", *arguments, *map(str, paths)]
        environment = {
            **os.environ,
            rival_worker.HOLD: str(self._folder),
            **self.environment,
        }
        with self._log.open("w") as stream:
            self._process = subprocess.Popen(
                command, stdout=stream, stderr=stream, env=environment, cwd=self._folder
            )

    def hold_slots(self) -> None:
        """Have its next micro-batch wait before its slots start."""
        (self._folder / "wanted").touch()

    def wait_until_held(self) -> None:
        """Return when a plan waits for its slots."""
        self.until((self._folder / "held").exists)

    def release_slots(self) -> None:
        """Let the slots of that plan start."""
        (self._folder / "released").touch()

    def log(self) -> str:
        """What it has logged, without what it was asked."""
        lines = self._log.read_text(errors="replace").splitlines(keepends=True)
        return "".join(each for each in lines if "headrace.rest.access" not in each)

    def until_logged(self, words: str) -> None:
        """Return when *words* are in its log."""
        self.until(lambda: words in self.log())

    def until(self, condition: Callable[[], object], *, seconds: float = _PATIENCE_SECONDS) -> None:
        """Wait for *condition*; fails with its log."""
        try:
            until(condition, seconds=seconds)
        except AssertionError as error:
            raise AssertionError(f"{error}\n{self.log()}") from None

    def until_all_deliver(self, names: Iterable[str]) -> None:
        """Return when the connectors of these *names* have delivered something since now."""
        with committed_ends(self.shared.bootstrap) as ends:
            left = {name: ends(name) for name in names}

            def has_come() -> bool:
                threading.Event().wait(_LOOK_SECONDS)
                for name, before in list(left.items()):
                    if ends(name) > before:
                        del left[name]
                return not left

            self.until(has_come)

    def until_all_is_there(self) -> None:
        """Return when every line is in its topic."""
        with committed_ends(self.shared.bootstrap) as ends:
            for name, lines in self.shared.lines.items():
                self.until(lambda name=name, lines=lines: ends(name) > len(lines))
        self.until(lambda: not any(each.lost for each in self.shared.verdicts().values()))

    def exit_code(self) -> int:
        """Wait for its end."""
        try:
            return self._popen().wait(_PATIENCE_SECONDS)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"It does not end:\n{self.log()}") from None

    def terminated(self) -> int:
        """Send SIGTERM; its exit code."""
        self._popen().send_signal(signal.SIGTERM)
        return self.exit_code()

    def send(self, number: signal.Signals) -> None:
        """Send a signal to the process itself."""
        self._popen().send_signal(number)

    def send_to_all(self, number: signal.Signals) -> None:
        """Send a signal to the process and to all that it has started, until no other one appears."""
        reached = set[int]()
        while left := set(self.tree()) - reached:
            for pid in left:
                _send(number, pid)
            reached |= left

    def tree(self) -> Iterator[int]:
        """The process and all that it has started."""
        parents = {pid: stat.parent for pid in _pids() if (stat := read_stat(pid))}
        own = self._popen().pid
        yield own
        for pid in parents:
            if own in _ancestors(pid, parents):
                yield pid

    def kill_java(self) -> None:
        """Kill its JVM."""
        for pid in self.tree():
            if _program(pid).endswith("/java"):
                _send(signal.SIGKILL, pid)

    def end(self) -> None:
        """Kill what is left of it."""
        if self._process is not None and self._process.poll() is None:
            self.send_to_all(signal.SIGKILL)
            self._process.wait()

    def url(self) -> str:
        """Where it answers."""
        self.until(lambda: _ANSWERS.search(self.log()))
        found = _ANSWERS.search(self.log())
        assert found
        return found[1]

    def failure(self, connector: str) -> str | None:
        """Why *connector* is FAILED, as this worker answers; None when it is not."""
        with urlopen(f"{self.url()}/connectors/{connector}/status", timeout=30) as answer:
            status = json.load(answer)["connector"]
        return status.get("trace", "") if status["state"] == "FAILED" else None

    def stored_failure(self, connector: str) -> str | None:
        """Why *connector* was FAILED when the worker ended."""
        storage = SqliteStorage(self._folder / "state.db")
        try:
            status = storage.statuses.statuses(connector)[None]
        finally:
            storage.close()
        return (status.trace or "") if status.state == "FAILED" else None

    def _popen(self) -> subprocess.Popen[bytes]:
        assert self._process is not None
        return self._process

    def _worker_props(self) -> Mapping[str, str]:
        return {
            "bootstrap.servers": self.shared.bootstrap,
            "key.converter": "string",
            "value.converter": "string",
            "group.id": f"g-{self.shared.name}",
            "offset.storage.partitions": "1",
            "state.file": str(self._folder / "state.db"),
            "headrace.lease.ms": str(1000 * LEASE_SECONDS),
            "headrace.slots": "6",
            "headrace.idle.poll.ms": "100",
            "producer.transaction.timeout.ms": str(1000 * TRANSACTION_SECONDS),
            "listeners": "http://127.0.0.1:0",
            **self.worker,
        }

    def _written(self, name: str, config: Mapping[str, str]) -> Path:
        path = self._folder / f"{name}.json"
        path.write_text(json.dumps(config))
        return path


def _dotted(settings: Mapping[str, str]) -> dict[str, str]:
    return {key.replace("_", "."): value for key, value in settings.items()}


def _pids() -> Iterator[int]:
    return (int(each.name) for each in Path("/proc").iterdir() if each.name.isdigit())


def _program(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")[0].decode()
    except FileNotFoundError:
        # It has ended.
        return ""


def _ancestors(pid: int, parents: Mapping[int, int]) -> Iterator[int]:
    while pid in parents:
        pid = parents[pid]
        yield pid


def _send(number: signal.Signals, pid: int) -> None:
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        return
