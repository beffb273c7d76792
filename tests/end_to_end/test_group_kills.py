"""Workers of one group are killed, frozen and stopped while records flow: each record comes once, whoever sends it."""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from uuid import uuid4

import httpx
import pytest

from end_to_end.dying import DyingWorker
from headrace.testing.judge import judged
from waiting import until

pytestmark = [pytest.mark.broker, pytest.mark.kill, pytest.mark.slow]

LINES = 2_000
CONNECTORS = ("a", "b", "c")
STOPPED = "The connector has stopped"
ENDS = {
    "kill": signal.SIGKILL,
    "freeze": signal.SIGSTOP,
    "terminate": signal.SIGTERM,
}


@pytest.fixture
def workers(bootstrap: str, tmp_path: Path) -> Iterator[list[DyingWorker]]:
    """Three of one group."""
    group = f"kills-{uuid4().hex[:8]}"
    with ExitStack() as opened:
        made = [DyingWorker(bootstrap, tmp_path / name, group, command="worker") for name in "xyz"]
        for each in made:
            opened.callback(each.end)
            each.start()
        yield made


def leader(workers: list[DyingWorker]) -> DyingWorker:
    """The one of *workers* that runs all connectors; waits until there is one."""
    found = list[DyingWorker]()

    def runs_all() -> bool:
        states = [shown(workers, name) for name in CONNECTORS]
        ids = {each["worker_id"] for each in states if each["state"] == "RUNNING"}
        found[:] = [
            each for each in workers if each.is_alive and each.url in map("http://{}".format, ids)
        ]
        return len(states) == len(CONNECTORS) and len(ids) == len(found) == 1

    until(runs_all, seconds=120)
    return found[0]


def shown(workers: list[DyingWorker], name: str) -> dict[str, str]:
    """The connector's own state, as the first of *workers* says that lives."""
    [url, *_] = [each.url for each in workers if each.is_alive]
    return httpx.get(f"{url}/connectors/{name}/status", timeout=60).json()["connector"]


def write(folder: Path, begin: int, end: int) -> list[bytes]:
    """A file of lines that no other one has."""
    lines = [json.dumps({"n": each}) for each in range(begin, end)]
    draft = folder / f".{begin}"
    draft.write_text("".join(f"{each}\n" for each in lines))
    draft.rename(folder / f"{begin}.jsonl")
    return [each.encode() for each in lines]


@pytest.mark.sampled(1)
@pytest.mark.timeout(900)
@pytest.mark.parametrize("ends", [("kill", "freeze", "terminate"), ("freeze", "kill", "freeze")])
def test_each_record_comes_once_whoever_leads(
    workers: list[DyingWorker], tmp_path: Path, ends: tuple[str, ...]
) -> None:
    """The next one goes on with what the group has committed; one that wakes up writes nothing."""
    topic = f"group-{uuid4().hex[:8]}"
    expected: dict[str, list[bytes]] = {name: [] for name in CONNECTORS}
    for name in CONNECTORS:
        (tmp_path / name / "in").mkdir(parents=True)
        config = {
            "connector.class": "files",
            "files.path": str(tmp_path / name / "in"),
            "files.format": "jsonl",
            "topic": f"{topic}-{name}",
            "files.batch.max.rows": "50",
            "files.min.age.ms": "0",
            "headrace.max.records.per.second": "500",
            "transaction.boundary.interval.ms": "150",
            "tasks.max": "1",
        }
        until_answered(workers, "POST", "/connectors", {"name": name, "config": config})
    at = 0
    for end in (*ends, None):
        first = leader(workers)
        for name in CONNECTORS:
            expected[name] += write(tmp_path / name / "in", at, at + LINES)
        at += LINES
        if end is None:
            break
        begin, full = (each * len(CONNECTORS) for each in (at - LINES, at))
        until(lambda: all_committed(first) > begin, seconds=60)  # noqa: B023 (called at once)
        assert all_committed(first) < full, "nothing was interrupted"
        first.send(ENDS[end])
        if first.is_frozen:
            second = leader([each for each in workers if each is not first])
            before = second.told().count(STOPPED)
            first.send(signal.SIGCONT)
            until(lambda: "has gone on without this worker" in first.told(), seconds=60)  # noqa: B023 (called at once)
            until(lambda: leader(workers) is second, seconds=60)  # noqa: B023 (called at once)
            assert before == second.told().count(STOPPED), "it was disturbed by the return"
        else:
            first.start()
    for name in CONNECTORS:
        until(lambda: committed(workers[0], name) == at, seconds=120)  # noqa: B023 (called at once)
        verdict = judged(workers[0].bootstrap, f"{topic}-{name}", expected[name])
        assert verdict.exactly_once, f"{name}: {verdict}"


def committed(worker: DyingWorker, name: str) -> int:
    """How many lines of the connector's files are committed, as *worker* says."""
    answer = httpx.get(f"{worker.url}/connectors/{name}/offsets", timeout=60).json()
    return sum(each["offset"]["recordCount"] for each in answer["offsets"])


def all_committed(worker: DyingWorker) -> int:
    """As :func:`committed`, of all connectors together."""
    return sum(committed(worker, name) for name in CONNECTORS)


def until_answered(workers: list[DyingWorker], method: str, path: str, body: object) -> None:
    """Ask one after the other until one of them does it."""

    def is_done() -> bool:
        return any(
            httpx.request(method, f"{each.url}{path}", json=body, timeout=60).is_success
            for each in workers
        )

    until(is_done, seconds=60)
