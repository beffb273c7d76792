"""Workers of Kafka Connect and of headrace in one group at the same time (``headrace.group.mixed``)."""

from __future__ import annotations

import signal
import time
from dataclasses import dataclass, field
from pathlib import Path

import httpx
import pytest

from end_to_end.either_worker import RunningWorker, Workers
from end_to_end.test_takeover import Group
from headrace.testing.judge import judged

pytestmark = [pytest.mark.broker, pytest.mark.slow, pytest.mark.timeout(300)]

_NAMES = ["c1", "c2", "c3", "c4"]
# A worker that is missed is waited for: no test can wait for the end of that.
_DELAY_SECONDS = 1_000
_SOON = 40.0


@dataclass
class Mixed:
    """A group, and the processes of both kinds in it."""

    group: Group
    delay_seconds: int = _DELAY_SECONDS
    protocol: str = "sessioned"
    java: Workers = field(init=False)
    ours: Workers = field(init=False)

    def __post_init__(self) -> None:
        delay = {"scheduled.rebalance.max.delay.ms": str(self.delay_seconds * 1000)}
        shared = {**self.group.workers.settings, **delay}
        own = {"headrace.group.mixed": "true", "connect.protocol": self.protocol}
        self.java = Workers(self.group.folder / "java", shared)
        self.ours = Workers(self.group.folder / "ours", {**shared, **own})

    def create(self, asked: RunningWorker, name: str) -> None:
        """A connector that runs."""
        self.group.write(name)
        self.group.create(asked, name)
        asked.wait_for(lambda: ["RUNNING", "RUNNING"] == asked.states(name))

    def owned(self, asked: RunningWorker, workers: Workers) -> set[str]:
        """The connectors that run on that worker with their task, as *asked* says."""
        found = asked.get("/connectors?expand=status") or {}
        here = {"worker_id": f"127.0.0.1:{workers.port}", "state": "RUNNING"}
        return {
            name
            for name, each in found.items()
            if each["status"]["tasks"]
            and all(
                here.items() <= part.items()
                for part in (each["status"]["connector"], *each["status"]["tasks"])
            )
        }

    def send_again(self, asked: RunningWorker, name: str) -> None:
        """Have a connector begin anew, whose task has ended before its offsets are altered."""
        asked.request("PUT", f"/connectors/{name}/stop")
        place = {"filename": str(self.group.file(name))}
        change = {"offsets": [{"partition": place, "offset": {"position": 0}}]}
        asked.request("PATCH", f"/connectors/{name}/offsets", change)
        assert "RUNNING" not in asked.states(name)[1:]
        self.group.written[name] *= 2
        asked.request("PUT", f"/connectors/{name}/resume")
        self.group.wait_for_all(asked, name)

    def read_all(self, asked: RunningWorker, names: list[str]) -> None:
        """Have the connectors read more lines, to the end."""
        for name in names:
            self.group.write(name)
        for name in names:
            self.group.wait_for_all(asked, name)

    def is_right(self) -> bool:
        """Whether each line was sent once."""
        return all(
            judged(self.group.bootstrap, self.group.topic(name), lines).exactly_once
            for name, lines in self.group.written.items()
        )

    def states_written(self, names: set[str]) -> int:
        """How many states of these connectors and their tasks lie in the topic."""
        keys = {f"status-connector-{name}" for name in names}
        keys |= {f"status-task-{name}-0" for name in names}
        return sum(key in keys for key, _ in self.group.records("status"))


@pytest.fixture
def group(bootstrap: str, tmp_path: Path) -> Group:
    """A group of no one."""
    return Group(bootstrap, tmp_path / "group", exactly_once=False)


@pytest.mark.parametrize(
    ("protocol", "by_request"),
    [("sessioned", False), ("compatible", True)],
    ids=["sessioned", "compatible"],
)
def test_java_leads(group: Group, protocol: str, *, by_request: bool) -> None:
    """Our worker runs what it is given, and when it leaves nothing waits, and nothing of the other worker stops."""
    mixed, more = Mixed(group, protocol=protocol), ["new1", "new2"]
    with mixed.java.java() as java:
        for name in _NAMES:
            mixed.create(java, name)
        with mixed.ours.ours() as ours:
            ours.wait_for(lambda: len(mixed.owned(ours, mixed.ours)) == 2)
            java.wait_for(lambda: len(mixed.owned(java, mixed.java)) == 2)
            # One for each worker; ours has the leader store its task, and waits until that is assigned.
            for name in more:
                mixed.create(java, name)
            ours.wait_for(lambda: len(mixed.owned(ours, mixed.ours)) == 3)
            mixed.read_all(java, [*_NAMES, *more])
            kept = mixed.owned(java, mixed.java)
            before = mixed.states_written(kept)
            began = time.monotonic()
            if by_request:
                url = f"{mixed.ours.address}/admin/workers/127.0.0.1:{mixed.ours.port}/relinquish"
                assert httpx.put(url).status_code == 202
                assert ours.process.wait(_SOON) == 0
            else:
                ours.end(signal.SIGTERM)
            java.wait_for(lambda: len(mixed.owned(java, mixed.java)) == 6)
            assert time.monotonic() < began + _SOON
        assert before == mixed.states_written(kept)
        mixed.read_all(java, [*_NAMES, *more])
        java.end(signal.SIGTERM)
    assert mixed.is_right()


@pytest.mark.parametrize("protocol", ["sessioned", "eager"])
def test_ours_leads(group: Group, protocol: str) -> None:
    """The worker of Kafka Connect is given its share, and what it had comes back when it is gone and the delay over.

    Where all work stops before it is dealt there is none.
    """
    mixed = Mixed(
        group,
        delay_seconds=_DELAY_SECONDS if protocol == "eager" else 2,
        protocol=protocol,
    )
    names = [*_NAMES]
    with mixed.ours.ours() as ours:
        for name in names:
            mixed.create(ours, name)
        with mixed.java.java() as java:
            java.wait_for(lambda: len(mixed.owned(java, mixed.java)) == 2)
            ours.wait_for(lambda: len(mixed.owned(ours, mixed.ours)) == 2)
            mixed.read_all(java, names)
            mixed.send_again(ours, min(mixed.owned(java, mixed.java)))
            if protocol != "eager":
                names.append("new")
                mixed.create(java, "new")
            java.end(signal.SIGTERM)
        ours.wait_for(lambda: mixed.owned(ours, mixed.ours) == set(names))
        mixed.read_all(ours, names)
        ours.end(signal.SIGTERM)
    assert mixed.is_right()


def test_a_task_without_its_connector(group: Group) -> None:
    """It is FAILED, with a sentence, and runs again when the other worker is gone."""
    mixed = Mixed(group, delay_seconds=0)
    with mixed.ours.ours() as ours:
        for name in ("a", "b"):
            mixed.create(ours, name)
        ours.request("PUT", "/connectors/b/stop")
        ours.wait_for(lambda: ["STOPPED"] == ours.states("b"))
        with mixed.java.java() as java:
            java.wait_for(lambda: ["RUNNING", "FAILED"] == java.states("a"))
            assert "Task 0 of connector a was assigned to this worker without" in java.traces("a")
            java.end(signal.SIGTERM)
        ours.wait_for(lambda: ["RUNNING", "RUNNING"] == ours.states("a"))
        mixed.read_all(ours, ["a"])
        ours.end(signal.SIGTERM)
    assert mixed.is_right()
