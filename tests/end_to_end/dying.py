"""A worker process that is killed at chosen steps of its writing, and what it leaves behind."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
from kafka.admin import MemberToRemove

from end_to_end import dying_worker
from end_to_end.process_tree import below, send
from headrace.herder.errors import NO_LEADER
from headrace.kafka.client_config import client_config
from headrace.kafka.deadline import Deadline
from headrace.kafka.wire.cluster import Cluster
from headrace.kafka.wire.settings import wire_settings
from headrace.pids import read_stat
from headrace.testing.judge import committed_records
from kafka import KafkaAdminClient
from waiting import until

SESSION_SECONDS = 6
"""Of workers of a group: what it takes until one that was killed is missed."""
Offsets = Mapping[str, int]
_AGAIN_SECONDS = 0.5
_ANSWERS = re.compile(r"Requests are answered at (http://\S+)/ ")


@dataclass(frozen=True, kw_only=True)
class Seen:
    """A connector: its topic and target state, ``None`` when it is not there, and its offsets in Kafka."""

    topic: str | None = None
    state: str | None = None
    offsets: Offsets = field(default_factory=dict[str, int])


@dataclass
class DyingWorker:
    """One command line in *folder*, started as often as it dies. *files* are those of its connectors.

    The *command* is ``run``, or ``worker`` for one of a group. One that *is_alone* there does not wait for the session of its
    predecessor, which an administrator has removed. *settings* are added to the worker's own. Its slots are threads, unless it
    *has_processes*, which live on when it is frozen, or is *on_spark*, where its settings say. *environment* is added to the test's.
    """

    bootstrap: str
    folder: Path
    group: str
    files: Sequence[Path] = ()
    command: str = "run"
    is_alone: bool = False
    settings: Mapping[str, str] = field(default_factory=dict[str, str])
    has_processes: bool = False
    on_spark: bool = False
    environment: Mapping[str, str] = field(default_factory=dict[str, str])

    def __post_init__(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        self._chosen = self.folder / "dies-at"
        self._starts = 0
        self._process: subprocess.Popen[bytes] | None = None
        self.url = ""
        self.is_frozen = False

    def start(self) -> None:
        """Start it, and return when it has completed its start, or has died."""
        if self.command == "worker" and self.is_alone:
            self._remove_predecessor()
        self._begin()
        until(lambda: self._is_healthy() or self.is_dead, seconds=300)

    def end(self) -> None:
        """Kill it, if it lives."""
        if self._process is not None:
            # Slots that are frozen with it would stay so.
            self.send_to_all(signal.SIGCONT)
            self._process.kill()
            self._process.wait()

    def send_to_all(self, number: signal.Signals) -> None:
        """Send a signal to its process, and then to all that it has started."""
        assert self._process is not None
        own = self._process.pid
        self.is_frozen = number is signal.SIGSTOP
        send(own, number)
        for pid in below(own):
            send(pid, number)

    def send(self, number: signal.Signals) -> None:
        """Send a signal to its process; one that ends it is waited for."""
        assert self._process is not None
        self._process.send_signal(number)
        self.is_frozen = number is signal.SIGSTOP
        if number in (signal.SIGKILL, signal.SIGTERM):
            self._process.wait(60)

    @property
    def is_alive(self) -> bool:
        """Whether its process runs, and is not frozen."""
        return self._process is not None and self._process.poll() is None and not self.is_frozen

    @property
    def is_dead(self) -> bool:
        """Whether it has ended by its own signal; fails when it has ended in another way."""
        assert self._process is not None
        code = self._process.poll()
        assert code in (None, -signal.SIGKILL), self.told()
        return code is not None

    def slots(self) -> list[int]:
        """The processes of its slots, if it has some: children of a server that it has started."""
        assert self._process is not None
        own = self._process.pid
        stats = [stat for each in below(own) if (stat := read_stat(each))]
        return [each.pid for each in stats if each.parent != own]

    def told(self) -> str:
        """What it has logged since its last start."""
        return self._log.read_text()

    @property
    def _log(self) -> Path:
        return self.folder / f"log-{self._starts}"

    def die_at(self, step: int | None) -> None:
        """Have it die at that step from now on, or not at all."""
        if step is None:
            self._chosen.unlink(missing_ok=True)
            return
        draft = self._chosen.with_suffix(".new")
        draft.write_text(str(step))
        draft.replace(self._chosen)

    def ask(self, method: str, path: str, body: object = None) -> httpx.Response:
        """Send a request that is answered well, again where a rebalance was underway: on a busy machine a member may be missed."""
        answer = self._request(method, path, body, again=60.0)
        assert answer.status_code < 300, answer.text
        return answer

    def _request(self, method: str, path: str, body: object, *, again: float) -> httpx.Response:
        deadline = Deadline.after(again)
        while True:
            answer = httpx.request(method, f"{self.url}{path}", json=body, timeout=90)
            if NO_LEADER not in answer.text or deadline.expired:
                return answer
            time.sleep(_AGAIN_SECONDS)

    def asked_until_death(self, method: str, path: str, body: object = None) -> bool:
        """Send a request; whether it was answered, which is well, before the worker died."""
        return self.asked_until_death_of(self, method, path, body)

    def asked_until_death_of(
        self, other: DyingWorker, method: str, path: str, body: object = None
    ) -> bool:
        """As :meth:`asked_until_death`, while the *other* worker dies, to which this one may send it on."""
        try:
            # While another one dies, that none leads is its death.
            again = 60.0 if other is self else 0.0
            answer = self._request(method, path, body, again=again)
        except httpx.TransportError:
            until(lambda: other.is_dead)
            return False
        if answer.status_code >= 400:
            # Whoever sends it on says so when the other one has died.
            assert other is not self, answer.text
            until(lambda: other.is_dead)
            return False
        return True

    def config_of(self, name: str, topic: str) -> Mapping[str, str]:
        """Kafka Connect's file source, of a file that never comes."""
        return {
            "name": name,
            "connector.class": "FileStreamSource",
            # The same for all workers of a group.
            "file": str(self.folder.parent / "none"),
            "topic": topic,
        }

    def seen(self, name: str) -> Seen:
        """How the connector is; fails when what the worker answers is not what lies in Kafka."""
        offsets = self.in_kafka(name)
        found = httpx.get(f"{self.url}/connectors/{name}/config", timeout=60)
        if found.status_code == 404:
            return Seen(offsets=offsets)
        topic = found.json()["topic"]
        assert self.config_of(name, topic) == found.json()
        shown = self.ask("GET", f"/connectors/{name}/offsets").json()["offsets"]
        assert offsets == {
            each["partition"]["filename"]: each["offset"]["position"] for each in shown
        }
        return Seen(topic=topic, state=self.state(name), offsets=offsets)

    def state(self, name: str) -> str:
        """What its status comes to, when it has settled."""
        state = ""

        def is_settled() -> bool:
            nonlocal state
            status = self.ask("GET", f"/connectors/{name}/status").json()
            state = str(status["connector"]["state"])
            return state in {"RUNNING", "PAUSED", "STOPPED"}

        try:
            until(is_settled)
        except AssertionError as error:
            error.add_note(f"Connector {name} is {state!r}.\n{self.told()}")
            raise
        return state

    def in_kafka(self, name: str) -> Offsets:
        """The connector's offsets as another client library reads them."""
        last = dict[bytes, bytes | None]()
        for each in committed_records(self.bootstrap, f"{self.group}-offsets"):
            last[bytes(each.key)] = each.value
        found = dict[str, int]()
        for key, value in last.items():
            connector, partition = json.loads(key)
            if connector == name and value is not None:
                found[partition["filename"]] = json.loads(value)["position"]
        return found

    def _is_healthy(self) -> bool:
        found = _ANSWERS.search(self.told())
        if not found:
            return False
        self.url = found[1]
        try:
            return httpx.get(f"{self.url}/health", timeout=60).status_code == 200
        except httpx.TransportError:
            # It has died, or it is about to.
            return False

    def members(self) -> list[str]:
        """The ids of those that are in its group, as the broker says."""
        client = client_config({"bootstrap.servers": self.bootstrap})
        with closing(Cluster(wire_settings(client.settings))) as cluster:
            found = cluster.describe_group(self.group, Deadline.after(60))
        return [each.member_id for each in found.members]

    def _remove_predecessor(self) -> None:
        found = self.members()
        if not found:
            return
        with closing(KafkaAdminClient(bootstrap_servers=self.bootstrap)) as admin:
            admin.remove_group_members(
                self.group, [MemberToRemove(member_id=each) for each in found]
            )

    def _alone(self) -> dict[str, str]:
        return {"state.file": str(self.folder / "state.db")}

    def _grouped(self) -> dict[str, str]:
        replicated = {
            f"{each}.storage.replication.factor": "1" for each in ("config", "status", "offset")
        }
        return {
            "config.storage.topic": f"{self.group}-configs",
            "status.storage.topic": f"{self.group}-statuses",
            "offset.storage.topic": f"{self.group}-offsets",
            # A new process waits for the session of the one that was killed.
            "status.storage.partitions": "1",
            "session.timeout.ms": str(SESSION_SECONDS * 1000),
            "heartbeat.interval.ms": "500",
            **replicated,
        }

    def _begin(self) -> None:
        worker: dict[str, Any] = {
            "bootstrap.servers": self.bootstrap,
            "key.converter": "string",
            "value.converter": "string",
            "group.id": self.group,
            "offset.storage.partitions": "1",
            **(self._grouped() if self.command == "worker" else self._alone()),
            "headrace.idle.poll.ms": "50",
            "listeners": "http://127.0.0.1:0",
            **self.settings,
        }
        path = self.folder / "worker.json"
        path.write_text(json.dumps(worker))
        self._starts += 1
        command = [
            sys.executable,
            dying_worker.__file__,
            self.command,
            str(path),
            *map(str, self.files),
        ]
        environment = {
            **os.environ,
            dying_worker.CHOSEN: str(self._chosen),
            dying_worker.NAME: self.folder.name,
            dying_worker.PROCESSES: "1" if self.has_processes else "",
            dying_worker.SPARK: "1" if self.on_spark else "",
            **self.environment,
        }
        with self._log.open("w") as stream:
            self._process = subprocess.Popen(
                command, stderr=stream, env=environment, cwd=self.folder
            )


def initial(**positions: int | None) -> list[Mapping[str, object]]:
    """Offsets as requests have them; ``None`` resets."""
    return [
        {
            "partition": {"filename": name},
            "offset": None if position is None else {"position": position},
        }
        for name, position in positions.items()
    ]
