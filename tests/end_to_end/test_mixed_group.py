"""Workers of Kafka Connect and of headrace in one group at the same time (``headrace.group.mixed``)."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

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
    more_java: Workers = field(init=False)
    ours: Workers = field(init=False)
    more_ours: Workers = field(init=False)

    def __post_init__(self) -> None:
        delay = {"scheduled.rebalance.max.delay.ms": str(self.delay_seconds * 1000)}
        shared = {**self.group.workers.settings, **delay}
        own = {"headrace.group.mixed": "true", "connect.protocol": self.protocol}
        # One that has begun otherwise goes on with what it had when its group becomes eager.
        theirs = {"connect.protocol": "eager"} if self.protocol == "eager" else {}
        self.java, self.more_java = (
            Workers(self.group.folder / name, {**shared, **theirs}) for name in ("java", "java2")
        )
        self.ours, self.more_ours = (
            Workers(self.group.folder / name, {**shared, **own}) for name in ("ours", "ours2")
        )

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

    def listed(self) -> dict[str, dict[str, Any]]:
        """The members, as a worker of ours lists them, by their ports."""
        found = json.loads(self._command("list", "--json"))
        return {int(each["url"].rstrip("/").rpartition(":")[2]): each for each in found}

    def relinquish(self, workers: Workers) -> None:
        """Have that worker of ours leave, by whichever one is asked; it has left when this returns."""
        self._command("relinquish", f"127.0.0.1:{workers.port}")

    def _command(self, *words: str) -> str:
        command = [sys.executable, "-m", "headrace", "workers", *words, "--url", self.ours.address]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout

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
                mixed.relinquish(mixed.ours)
                assert ours.process.wait(_SOON) == 0
            else:
                ours.end(signal.SIGTERM)
            java.wait_for(lambda: len(mixed.owned(java, mixed.java)) == 6)
            assert time.monotonic() < began + _SOON
        assert before == mixed.states_written(kept)
        mixed.read_all(java, [*_NAMES, *more])
        java.end(signal.SIGTERM)
    assert mixed.is_right()


def java_leads_where_all_work_stops_before_it_is_dealt(group: Group) -> None:
    """Our worker ends what it has before it joins again, and what it is dealt runs; nothing waits for it when it is gone."""
    mixed = Mixed(group, protocol="eager")
    with mixed.java.java() as java:
        for name in _NAMES:
            mixed.create(java, name)
        with mixed.ours.ours() as ours:
            ours.wait_for(lambda: len(mixed.owned(ours, mixed.ours)) == 2)
            java.wait_for(lambda: len(mixed.owned(java, mixed.java)) == 2)
            mixed.read_all(java, _NAMES)
            ours.end(signal.SIGTERM)
        java.wait_for(lambda: mixed.owned(java, mixed.java) == set(_NAMES))
        mixed.read_all(java, _NAMES)
        java.end(signal.SIGTERM)
    assert mixed.is_right()


def two_of_ours_under_a_java_leader(group: Group) -> None:
    """One is asked to have the other one leave, which the leader does not know; when the leader is killed the last one takes over."""
    mixed, names = Mixed(group), _NAMES[:3]
    with mixed.java.java() as java:
        for name in names:
            mixed.create(java, name)
        with mixed.ours.ours() as ours, mixed.more_ours.ours() as other:
            for each in (mixed.java, mixed.ours, mixed.more_ours):
                ours.wait_for(lambda each=each: len(mixed.owned(ours, each)) == 1)
            mixed.read_all(ours, names)
            found = mixed.listed()
            assert {mixed.java.port, mixed.ours.port, mixed.more_ours.port} == set(found)
            assert found[mixed.java.port]["is_leader"]
            assert [1, 1, 1] == [len(each["connectors"]) for each in found.values()]

            mixed.relinquish(mixed.more_ours)
            assert other.process.wait(_SOON) == 0
            left = (mixed.java, mixed.ours)
            ours.wait_for(lambda: sum(len(mixed.owned(ours, each)) for each in left) == 3)
            mixed.read_all(ours, names)
            java.end(signal.SIGKILL)
            ours.wait_for(lambda: mixed.owned(ours, mixed.ours) == set(names))
            mixed.read_all(ours, names)
            ours.end(signal.SIGTERM)
    assert mixed.is_right()


def two_of_theirs_under_ours(group: Group) -> None:
    """Each is given its share, and what one that is killed had goes on at the others."""
    mixed, names = Mixed(group, delay_seconds=2), _NAMES[:3]
    with mixed.ours.ours() as ours:
        for name in names:
            mixed.create(ours, name)
        with mixed.java.java() as java, mixed.more_java.java() as other:
            for each in (mixed.ours, mixed.java, mixed.more_java):
                ours.wait_for(lambda each=each: len(mixed.owned(ours, each)) == 1)
            mixed.read_all(ours, names)
            other.end(signal.SIGKILL)
            left = (mixed.ours, mixed.java)
            ours.wait_for(lambda: sum(len(mixed.owned(ours, each)) for each in left) == 3)
            mixed.read_all(ours, names)
            java.end(signal.SIGTERM)
        ours.wait_for(lambda: mixed.owned(ours, mixed.ours) == set(names))
        mixed.read_all(ours, names)
        ours.end(signal.SIGTERM)
    assert mixed.is_right()


@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    ("play", "exactly_once"),
    [
        (two_of_ours_under_a_java_leader, True),
        (two_of_theirs_under_ours, True),
        (java_leads_where_all_work_stops_before_it_is_dealt, False),
    ],
    ids=["two of ours", "two of theirs", "eager"],
)
def test_other_groups(
    bootstrap: str, tmp_path: Path, play: Callable[[Group], None], *, exactly_once: bool
) -> None:
    """Three members, with exactly-once, and the oldest protocol."""
    play(Group(bootstrap, tmp_path / "group", exactly_once))


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
