"""Workers of one group are killed, frozen and stopped while records flow: each record comes once, whoever sends it.

What keeps two workers from writing was taken out of a copy of the sources, one by one, and a quick test failed each time:

- ``Distributed.holds`` says yes always: ``test_a_membership_under_another_name_does_not_count_before_what_ran_has_ended``;
- ``DistributedConfig.lease_seconds`` is not bounded: ``test_connects_defaults_are_the_defaults_but_for_exactly_once``;
- the config topic is not read to its end before its task count is taken: ``test_who_fences_knows_all_tasks_that_may_write_as_of_now``.
"""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from uuid import uuid4

import pytest

from end_to_end.dying import DyingWorker
from end_to_end.dying_worker import NAME
from end_to_end.loaded_group import AT_LEAST_ONCE, LoadedGroup, stops
from headrace.testing.judge import committed_records
from waiting import until

pytestmark = [pytest.mark.broker, pytest.mark.kill, pytest.mark.slow]

LINES = 1_000
ENDS = {
    "kill": signal.SIGKILL,
    "freeze": signal.SIGSTOP,
    "terminate": signal.SIGTERM,
}

SAYS_WHO = {
    "transforms": "who",
    "transforms.who.type": "InsertHeader",
    "transforms.who.header": "who",
    "transforms.who.value.literal": f"${{env:{NAME}}}",
}


@pytest.fixture
def support() -> str:
    """What exactly.once.source.support is."""
    return "enabled"


@pytest.fixture
def lively() -> int | None:
    """The number of the worker whose slots are processes, and live on when it is frozen."""
    return None


@pytest.fixture
def group(
    bootstrap: str, tmp_path: Path, support: str, lively: int | None
) -> Iterator[LoadedGroup]:
    """Three workers, whose first leader is the first one; records say who has sent them."""
    group = f"kills-{uuid4().hex[:8]}"
    settings = {
        "scheduled.rebalance.max.delay.ms": "1000",
        "headrace.slots": "8",
        "config.providers": "env",
        "config.providers.env.class": "org.apache.kafka.common.config.provider.EnvVarConfigProvider",
        **(AT_LEAST_ONCE if support == "disabled" else {}),
    }
    with ExitStack() as opened:
        made = [
            DyingWorker(
                bootstrap,
                tmp_path / name,
                group,
                command="worker",
                settings=settings,
                has_processes=number == lively,
            )
            for number, name in enumerate("xyz")
        ]
        for each in made:
            opened.callback(each.end)
            each.start()
        yield LoadedGroup(made, tmp_path, more=SAYS_WHO)


def disturb(group: LoadedGroup, ends: tuple[str, ...], first: int) -> None:
    """One worker after the other ends so while records flow, from the one with the number *first* on, and comes back."""
    for turn, end in enumerate(ends):
        victim = group.workers[(first + turn) % len(group.workers)]
        others = [each for each in group.workers if each is not victim]
        group.until_divided(group.workers)
        before = group.all_committed(others[0])
        group.write(LINES)
        until(lambda: group.all_committed(others[0]) > before, seconds=60)  # noqa: B023 (called at once)
        assert group.all_committed(others[0]) < group.written * len(group.names), (
            "nothing was interrupted"
        )
        stopped = stops(others)
        victim.send(ENDS[end])
        group.until_divided(others)
        assert stopped == stops(others), "others were disturbed"
        if victim.is_frozen:
            victim.send(signal.SIGCONT)
            until(lambda: "has gone on without this worker" in victim.told(), seconds=60)  # noqa: B023 (called at once)
        else:
            victim.start()
    group.until_divided(group.workers)
    group.write(LINES)


@pytest.mark.sampled(1)
@pytest.mark.timeout(900)
@pytest.mark.parametrize(
    "ends", [("kill", "freeze", "terminate"), ("freeze", "kill", "freeze"), ("terminate", "kill")]
)
@pytest.mark.parametrize("first", [0, 1])
def test_each_record_comes_once_whoever_sends_it(
    group: LoadedGroup, ends: tuple[str, ...], first: int
) -> None:
    """Others go on with what the group has committed; who wakes up writes nothing, and who leaves on purpose is not missed."""
    group.create(group.workers[2])
    disturb(group, ends, first)
    for name, verdict in group.verdicts(group.workers[0]).items():
        assert verdict.exactly_once, f"{name}: {verdict}"


@pytest.mark.sampled(1)
@pytest.mark.timeout(900)
@pytest.mark.parametrize("support", ["disabled"])
@pytest.mark.parametrize("ends", [("kill", "freeze"), ("freeze", "kill")])
@pytest.mark.parametrize("first", [0, 1])
def test_at_least_once_no_record_is_lost(
    group: LoadedGroup, ends: tuple[str, ...], first: int
) -> None:
    """Without exactly-once, records come again where no one had committed them."""
    group.create(group.workers[2])
    disturb(group, ends, first)
    for name, verdict in group.verdicts(group.workers[0]).items():
        assert (verdict.lost, verdict.foreign) == (0, 0), f"{name}: {verdict}"


def senders(group: LoadedGroup, name: str) -> list[str]:
    """Who has sent each record of a connector, in the order of the topic."""
    records = committed_records(group.workers[0].bootstrap, group.topic(name))
    return [dict(each.headers)["who"].decode() for each in records]


@pytest.mark.timeout(400)
@pytest.mark.parametrize("support", ["enabled", "disabled"])
@pytest.mark.parametrize("lively", [0, 1])
def test_the_slots_of_a_frozen_driver_write_nothing_after_their_successors_began(
    group: LoadedGroup, support: str, lively: int
) -> None:
    """They live on, and end before the session does, in at-least-once, too."""
    group.names = group.names[:3]
    group.create(group.workers[2])
    victim = group.workers[lively]
    others = [each for each in group.workers if each is not victim]
    with group.pouring():
        group.until_divided(group.workers)
        group.until_moving()
        moved = [name for name, url in group.runners(others[0]).items() if url == victim.url]
        left = victim.slots()
        victim.send(signal.SIGSTOP)
        group.until_divided(others)
        until(lambda: not set(left) & set(victim.slots()), seconds=60)
        group.until_moving()
    for name in moved:
        who = senders(group, name)
        began = next(place for place, each in enumerate(who) if each != victim.folder.name)
        assert victim.folder.name in who[:began], "nothing was sent before"
        assert victim.folder.name not in who[began:], name
    victim.send(signal.SIGCONT)
    for name, verdict in group.verdicts(others[0]).items():
        assert (verdict.lost, verdict.foreign) == (0, 0), f"{name}: {verdict}"
        assert verdict.exactly_once or support == "disabled", f"{name}: {verdict}"
