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

LINES = 1_000
CONNECTORS = ("a", "b", "c", "d", "e", "f")
STOPPED = "The connector has stopped"
ENDS = {
    "kill": signal.SIGKILL,
    "freeze": signal.SIGSTOP,
    "terminate": signal.SIGTERM,
}


@pytest.fixture
def workers(bootstrap: str, tmp_path: Path) -> Iterator[list[DyingWorker]]:
    """Three of one group, whose first leader is the first one."""
    group = f"kills-{uuid4().hex[:8]}"
    delay = {"scheduled.rebalance.max.delay.ms": "1000"}
    with ExitStack() as opened:
        made = [
            DyingWorker(bootstrap, tmp_path / name, group, command="worker", settings=delay)
            for name in "xyz"
        ]
        for each in made:
            opened.callback(each.end)
            each.start()
        yield made


def are_divided(workers: list[DyingWorker]) -> bool:
    """Whether each connector runs on one of *workers*, and each of them runs as many."""
    runs = runners(workers)
    shares = [list(runs.values()).count(each.url) for each in workers]
    return sum(shares) == len(CONNECTORS) and max(shares) - min(shares) <= 1


def runners(workers: list[DyingWorker]) -> dict[str, str]:
    """Where each connector runs that runs, as the first of *workers* says."""
    states = {
        name: httpx.get(f"{workers[0].url}/connectors/{name}/status", timeout=60).json()
        for name in CONNECTORS
    }
    return {
        name: f"http://{each['connector']['worker_id']}"
        for name, each in states.items()
        if each["connector"]["state"] == "RUNNING"
    }


def write(folder: Path, begin: int, end: int) -> list[bytes]:
    """A file of lines that no other one has."""
    lines = [json.dumps({"n": each}) for each in range(begin, end)]
    draft = folder / f".{begin}"
    draft.write_text("".join(f"{each}\n" for each in lines))
    draft.rename(folder / f"{begin}.jsonl")
    return [each.encode() for each in lines]


@pytest.mark.sampled(1)
@pytest.mark.timeout(900)
@pytest.mark.parametrize(
    "ends", [("kill", "freeze", "terminate"), ("freeze", "kill", "freeze"), ("terminate", "kill")]
)
@pytest.mark.parametrize("first", [0, 1])
def test_each_record_comes_once_whoever_sends_it(
    workers: list[DyingWorker], tmp_path: Path, ends: tuple[str, ...], first: int
) -> None:
    """Others go on with what the group has committed; who wakes up writes nothing, and who leaves on purpose is not missed."""
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
            "headrace.max.records.per.second": "250",
            "transaction.boundary.interval.ms": "150",
            "tasks.max": "1",
        }
        workers[2].ask("POST", "/connectors", {"name": name, "config": config})
    at = 0
    for turn, end in enumerate((*ends, None)):
        until(lambda: are_divided(workers), seconds=120)
        for name in CONNECTORS:
            expected[name] += write(tmp_path / name / "in", at, at + LINES)
        begin, full = at * len(CONNECTORS), (at + LINES) * len(CONNECTORS)
        at += LINES
        if end is None:
            break
        victim = workers[(first + turn) % len(workers)]
        others = [each for each in workers if each is not victim]
        until(lambda: all_committed(others[0]) > begin, seconds=60)  # noqa: B023 (called at once)
        assert all_committed(others[0]) < full, "nothing was interrupted"
        before = [each.told().count(STOPPED) for each in others]
        victim.send(ENDS[end])
        until(lambda: are_divided(others), seconds=120)  # noqa: B023 (called at once)
        assert before == [each.told().count(STOPPED) for each in others], "others were disturbed"
        if victim.is_frozen:
            victim.send(signal.SIGCONT)
            until(lambda: "has gone on without this worker" in victim.told(), seconds=60)  # noqa: B023 (called at once)
        else:
            victim.start()
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
