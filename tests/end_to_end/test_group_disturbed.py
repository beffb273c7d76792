"""Brokers, links and workers of a group fail or are replaced under load: nothing is lost, and no connector moves that need not."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple
from uuid import uuid4

import pytest

from doubles.cut_connections import Side, side
from end_to_end.dying import SESSION_SECONDS, DyingWorker
from end_to_end.loaded_group import AT_LEAST_ONCE, SECONDS, LoadedGroup, stops
from waiting import until

pytestmark = [
    pytest.mark.broker,
    pytest.mark.kill,
    pytest.mark.slow,
    pytest.mark.timeout(400),
]

GONE_ON = "has gone on without this worker"


class Scene(NamedTuple):
    """A group under load, the one of its workers that is disturbed, the others, and the broker; only the victim uses its links."""

    group: LoadedGroup
    victim: DyingWorker
    others: list[DyingWorker]
    place: Side


@pytest.fixture(scope="module")
def mortal(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Side]:
    """A broker, as whoever was last has left it."""
    with side(tmp_path_factory.mktemp("group-broker")) as made:
        yield made


@pytest.fixture
def place(mortal: Side) -> Side:
    """One that runs, and whose links carry everything."""
    mortal.connections.resume()
    mortal.broker.resume()
    mortal.broker.start()
    return mortal


@pytest.fixture
def support() -> str:
    """What exactly.once.source.support is."""
    return "enabled"


@pytest.fixture
def scene(place: Side, tmp_path: Path, support: str, victim: int) -> Iterator[Scene]:
    """Three workers, of which the first one leads, and the one with the number *victim* is disturbed."""
    name = f"disturbed-{uuid4().hex[:8]}"
    settings = {
        "scheduled.rebalance.max.delay.ms": "1000",
        "headrace.slots": "8",
        **(AT_LEAST_ONCE if support == "disabled" else {}),
    }
    with ExitStack() as opened:
        workers = list[DyingWorker]()
        for number, folder in enumerate("xyz"):
            link = {"bootstrap.servers": place.bootstrap} if number == victim else {}
            made = DyingWorker(
                place.broker.bootstrap,
                tmp_path / folder,
                name,
                command="worker",
                settings={**settings, **link},
            )
            opened.callback(made.end)
            made.start()
            workers.append(made)
        # Whoever is stuck is to find its way, so that its process ends.
        opened.callback(place.connections.resume)
        others = [each for each in workers if each is not workers[victim]]
        yield Scene(LoadedGroup(workers, tmp_path), workers[victim], others, place)


def judge(scene: Scene, disturb: Callable[[Scene], None], *, is_exact: bool) -> None:
    """Disturb the group while records flow, and judge what has come."""
    group = scene.group
    group.create(scene.others[0])
    with group.pouring():
        group.until_divided(group.workers)
        group.until_moving()
        disturb(scene)
        group.until_divided(group.workers)
        group.until_moving()
    for name, verdict in group.verdicts(scene.others[0]).items():
        assert (verdict.lost, verdict.foreign) == (0, 0), f"{name}: {verdict}"
        assert verdict.exactly_once or not is_exact, f"{name}: {verdict}"


def _is_replaced(scene: Scene) -> None:
    """The others take over, and nothing that they ran is interrupted."""
    before = stops(scene.others)
    scene.group.until_divided(scene.others)
    assert before == stops(scene.others), "others were disturbed"
    scene.group.until_moving()


def silent_link(scene: Scene) -> None:
    """The victim hears nothing, for longer than its session."""
    scene.place.connections.stall()
    _is_replaced(scene)
    scene.place.connections.resume()
    until(lambda: GONE_ON in scene.victim.told(), seconds=SECONDS)


def closed_link(scene: Scene) -> None:
    """Its connections are refused, for longer than its session."""
    scene.place.connections.sever()
    _is_replaced(scene)
    scene.place.connections.resume()
    until(lambda: GONE_ON in scene.victim.told(), seconds=SECONDS)


def killed(scene: Scene) -> None:
    """SIGKILL."""
    scene.victim.send(signal.SIGKILL)
    _is_replaced(scene)
    scene.victim.start()


def frozen(scene: Scene) -> None:
    """SIGSTOP, for longer than its session."""
    scene.victim.send(signal.SIGSTOP)
    _is_replaced(scene)
    scene.victim.send(signal.SIGCONT)
    until(lambda: GONE_ON in scene.victim.told(), seconds=SECONDS)


@pytest.mark.sampled(1)
@pytest.mark.parametrize("victim", [0, 2])
@pytest.mark.parametrize("disturb", [silent_link, closed_link])
def test_a_worker_that_is_cut_off_sends_nothing_twice(
    scene: Scene, disturb: Callable[[Scene], None]
) -> None:
    """Its tasks end before its session does; what was under way arrives late, and counts no more."""
    judge(scene, disturb, is_exact=True)


@pytest.mark.sampled(1)
@pytest.mark.parametrize("victim", [0, 2])
@pytest.mark.parametrize("support", ["disabled"])
@pytest.mark.parametrize("disturb", [silent_link, closed_link, killed, frozen])
def test_at_least_once_nothing_is_lost(scene: Scene, disturb: Callable[[Scene], None]) -> None:
    """Whatever happens to a worker without exactly-once."""
    judge(scene, disturb, is_exact=False)


@pytest.mark.parametrize("victim", [2])
def test_a_restart_of_the_broker_moves_nothing(scene: Scene) -> None:
    """All workers find their places again, and each goes on with what it had."""

    def restart(scene: Scene) -> None:
        before = scene.group.runners(scene.others[0])
        scene.place.broker.kill()
        scene.place.broker.start()
        scene.group.until_moving()
        assert before == scene.group.runners(scene.others[0])

    judge(scene, restart, is_exact=True)


def frozen_broker(scene: Scene) -> None:
    """It answers nothing for longer than a session, and when it wakes, it takes all members for dead."""
    scene.place.broker.pause()
    until_over = time.monotonic() + 1.5 * SESSION_SECONDS
    until(lambda: time.monotonic() > until_over)
    scene.place.broker.resume()


def frozen_group(scene: Scene) -> None:
    """All workers, until the broker has removed them."""
    for each in scene.group.workers:
        each.send(signal.SIGSTOP)
    until(lambda: not scene.victim.members(), seconds=SECONDS)
    for each in scene.group.workers:
        each.send(signal.SIGCONT)


@pytest.mark.parametrize("victim", [0])
@pytest.mark.parametrize("disturb", [frozen_broker, frozen_group])
def test_a_group_whose_members_were_all_removed_goes_on(
    scene: Scene, disturb: Callable[[Scene], None]
) -> None:
    """Each joins as someone new, and what was under way counts once."""
    judge(scene, disturb, is_exact=True)


@pytest.mark.sampled(1)
@pytest.mark.parametrize("victim", [0, 2])
def test_a_worker_hands_over_and_takes_again_under_load(scene: Scene) -> None:
    """``relinquish?stay=true`` and ``rejoin``, asked of another worker: the others' connectors are not interrupted."""
    name = scene.victim.url.removeprefix("http://").rstrip("/")

    def relinquish(scene: Scene) -> None:
        scene.others[0].ask("PUT", f"/admin/workers/{name}/relinquish?stay=true")
        _is_replaced(scene)
        assert scene.victim.is_alive
        before = sum(stops(scene.others))
        scene.others[1].ask("PUT", f"/admin/workers/{name}/rejoin")
        scene.group.until_divided(scene.group.workers)
        # What the victim takes, and nothing else.
        assert sum(stops(scene.others)) - before == len(scene.group.names) // 3

    judge(scene, relinquish, is_exact=True)


@pytest.mark.parametrize("victim", [0])
def test_a_rolling_restart_under_load_interrupts_only_what_moves(scene: Scene) -> None:
    """Each worker in turn, the leader first: nothing is lost, nothing comes twice."""

    def roll(scene: Scene) -> None:
        group = scene.group
        for each in group.workers:
            others = [one for one in group.workers if one is not each]
            before = stops(others)
            each.send(signal.SIGTERM)
            group.until_divided(others)
            assert before == stops(others), "others were disturbed"
            each.start()
            group.until_divided(group.workers)
            moved = sum(stops(others)) - sum(before)
            assert moved == len(group.names) // 3, "more was moved than was needed"

    judge(scene, roll, is_exact=True)
