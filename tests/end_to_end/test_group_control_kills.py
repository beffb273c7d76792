"""The leader of a group is killed at each step of a request, while another worker runs the connector: it is as before, or as asked for."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from uuid import uuid4

import httpx
import pytest

from end_to_end.dying import DyingWorker
from end_to_end.test_control_kills import CASES, MOST_STEPS
from waiting import until

pytestmark = [pytest.mark.broker, pytest.mark.kill, pytest.mark.slow]

# Each death costs a session, so that a case plays every so many steps.
_STRIDE = 6
_SECONDS = 60.0


@pytest.fixture
def workers(bootstrap: str, tmp_path: Path) -> Iterator[list[DyingWorker]]:
    """Two of one group."""
    group = f"leaders-{uuid4().hex[:8]}"
    settings = {"scheduled.rebalance.max.delay.ms": "0", "headrace.slots": "100"}
    with ExitStack() as opened:
        made = [
            DyingWorker(bootstrap, tmp_path / name, group, command="worker", settings=settings)
            for name in "xy"
        ]
        for each in made:
            opened.callback(each.end)
            each.start()
        yield made


def leading(workers: list[DyingWorker]) -> tuple[DyingWorker, DyingWorker]:
    """The worker that leads, and the other one; once both are in the group, and what an earlier leader has left is settled."""
    found = list[str]()

    def is_settled() -> bool:
        # Answered by the leader alone, once it has settled what was left.
        answer = httpx.get(f"{workers[0].url}/admin/workers", timeout=60)
        if answer.status_code != 200:
            return False
        found[:] = [each["url"].rstrip("/") for each in answer.json() if each["is_leader"]]
        return len(answer.json()) == len(workers)

    until(is_settled, seconds=_SECONDS)
    leader = next(each for each in workers if each.url == found[0])
    return leader, next(each for each in workers if each is not leader)


@pytest.mark.sampled(1)
@pytest.mark.timeout(600)
@pytest.mark.parametrize("route", ["leader", "follower"])
@pytest.mark.parametrize("first", range(1, _STRIDE + 1))
@pytest.mark.parametrize("asked", CASES)
def test_the_next_leader_leaves_the_old_state_or_the_new_one(
    workers: list[DyingWorker], asked: str, first: int, route: str
) -> None:
    """Configuration, state and offsets go together, whoever was asked; what was answered has been done."""
    case, has_ended = CASES[asked], False
    for step in range(first, MOST_STEPS, _STRIDE):
        leader, other = leading(workers)
        # So that the other one runs all connectors.
        own = leader.url.removeprefix("http://")
        leader.ask("PUT", f"/admin/workers/{own}/relinquish?stay=true")
        name = f"c{step}"
        case.prepare(other, name)
        leader.die_at(step)
        is_answered = case.ask(leader if route == "leader" else other, name, dying=leader)
        leader.die_at(None)
        has_ended = not leader.is_dead
        if has_ended:
            leader.ask("PUT", f"/admin/workers/{own}/rejoin")
        else:
            leader.start()
        leading(workers)
        found = other.seen(name)
        assert found in ([case.new] if is_answered else [case.old, case.new]), f"step {step}"
        assert found == leader.seen(name), f"step {step}"
        if has_ended:
            return
    pytest.fail("It died at every step.")
