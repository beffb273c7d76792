"""`headrace workers`: what it prints, what it requests from a worker, and how it waits."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, replace
from threading import Thread

import click
import pytest

from cli.conftest import Shell
from headrace.cli.workers import Listed, Progress, progress, rejoin
from headrace.herder.answers import WorkerInfo, WorkerState
from headrace.herder.errors import ConflictError
from headrace.rest.config import RestConfig
from headrace.rest.server import RestServer
from rest.fake_herder import FakeHerder, worker

ACTIVE, LEAVING, ARRIVING = WorkerState.ACTIVE, WorkerState.LEAVING, WorkerState.ARRIVING
ONE, TWO = "one:8083", "two:8083"


@dataclass(kw_only=True)
class Turns(FakeHerder):
    """Tells of one state of the group after the other, and of the last one again and again; ``None`` is a conflict."""

    turns: list[dict[str, WorkerInfo] | None]

    def workers(self) -> list[WorkerInfo]:
        """The next one."""
        now = self.turns.pop(0) if len(self.turns) > 1 else self.turns[0]
        if now is None:
            raise ConflictError("A rebalance is underway.")
        return list(now.values())


@dataclass
class Leaves(FakeHerder):
    """Its process ends when it has been asked twice about its progress."""

    ends: Callable[[], None] = lambda: None
    asked: int = 0
    has_ended: bool = False

    def workers(self) -> list[WorkerInfo]:
        """All of them, for the last time."""
        self.asked += 1
        if self.asked == 2 and not self.has_ended:
            self.has_ended = True
            Thread(target=self.ends, daemon=True).start()
        return list(self.group.values())


Serve = Callable[[FakeHerder], RestServer]


@pytest.fixture
def serve(monkeypatch: pytest.MonkeyPatch) -> Iterator[Serve]:
    """Start a server for a herder; the last one is at ``HEADRACE_URL``."""
    with ExitStack() as opened:

        def started(herder: FakeHerder) -> RestServer:
            server = RestServer(herder, RestConfig.parse({"listeners": "http://127.0.0.1:0"}))
            server.start()
            opened.callback(server.close)
            monkeypatch.setenv("HEADRACE_URL", server.url)
            return server

        yield started


@pytest.fixture
def shell(capsys: pytest.CaptureFixture[str]) -> Shell:
    """The command line, without the worker of other commands."""
    return Shell(captured=capsys)


@pytest.fixture(autouse=True)
def _looks_often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("headrace.cli.workers._LOOK_SECONDS", 0.01)


def group(state: WorkerState, *connectors: str) -> dict[str, WorkerInfo]:
    """Two workers, of which the first is in this state."""
    first = worker(ONE, state=state, connectors=connectors, url="")
    return {ONE: first, TWO: worker(TWO, is_leader=True, url="", version="")}


OTHER = {TWO: worker(TWO, is_leader=True, url="")}


def test_workers_are_listed(shell: Shell, serve: Serve):
    """With how many connectors they run."""
    serve(FakeHerder(group=group(ARRIVING, "a", "b")))

    assert [
        "worker    state     leader  slots  connectors  version",
        "one:8083  ARRIVING  -       4      2           1.2",
        "two:8083  ACTIVE    yes     4      0           -",
    ] == shell.done("workers", "list").splitlines()
    assert ["a", "b"] == shell("workers", "list", "--json").json[0]["connectors"]


def test_a_worker_leaves(shell: Shell, serve: Serve):
    """The command returns when it is gone; that a leader is missing meanwhile does not matter."""
    before = group(ACTIVE, "a")
    herder = Turns(group=before, turns=[before, before, group(LEAVING, "a"), None, OTHER])
    serve(herder)

    assert "Worker one:8083 has left the group.\n" == shell.done("workers", "relinquish", ONE)
    assert [("relinquish", (ONE, False))] == herder.calls
    assert [OTHER] == herder.turns


def test_a_worker_hands_over_and_stays(shell: Shell, serve: Serve):
    """The command returns when it has no connectors."""
    before = group(ACTIVE, "a")
    herder = Turns(group=before, turns=[before, group(LEAVING, "a"), group(LEAVING)])
    serve(herder)

    shown = shell.done("workers", "relinquish", ONE, "--stay")

    assert shown == (
        "Worker one:8083 has no connectors, and takes none until 'headrace workers rejoin one:8083'.\n"
    )
    assert [("relinquish", (ONE, True))] == herder.calls
    assert "null\n" == shell.done("workers", "relinquish", ONE, "--stay", "--json")


@pytest.mark.parametrize(
    ("count", "has"),
    [
        (0, "runs nothing"),
        (2, "still runs a, b"),
        (10, "still runs a, b, c, d, e, f, g, h, 2 more"),
    ],
)
def test_a_worker_that_takes_longer_is_reported(
    shell: Shell, serve: Serve, *, count: int, has: str
):
    """With what it still has."""
    serve(Turns(group=group(ACTIVE), turns=[group(LEAVING, *"abcdefghij"[:count])]))

    assert shell.failed("workers", "relinquish", ONE, "--timeout", 0.1) == (
        f"headrace: Worker one:8083 has not left within 0.1 s. It is LEAVING and {has}. It goes on; "
        "'headrace workers list' shows how far it is.\n"
    )


def test_a_group_that_does_not_answer_in_time_is_reported(shell: Shell, serve: Serve):
    """With the reason."""
    serve(Turns(group=group(ACTIVE), turns=[group(ACTIVE), None]))

    shown = shell.failed("workers", "relinquish", ONE, "--timeout", 0.1)
    assert shown.endswith("has not left within 0.1 s. A rebalance is underway.\n")


def test_another_worker_is_asked_when_the_one_that_was_asked_ends(shell: Shell, serve: Serve):
    """It may be the one that leaves."""
    stays = serve(FakeHerder(group=OTHER))
    before = {ONE: worker(ONE, url=""), TWO: replace(OTHER[TWO], url=stays.url)}
    leaves = Leaves(group=before)
    leaves.ends = serve(leaves).close

    assert "Worker one:8083 has left the group.\n" == shell.done("workers", "relinquish", ONE)
    assert leaves.has_ended


def test_no_worker_of_kafka_connect_is_asked(shell: Shell, serve: Serve):
    """It leads the group, and does not know the question: the last one of headrace has left when it does not answer."""
    leaves = Leaves(group={ONE: worker(ONE)})
    java = serve(FakeHerder(trouble=lambda: pytest.fail("It was asked.")))
    leaves.group[TWO] = worker(TWO, is_leader=True, url=java.url, version="")
    leaves.ends = serve(leaves).close

    assert "Worker one:8083 has left the group.\n" == shell.done("workers", "relinquish", ONE)


def test_the_last_worker_has_left_when_nothing_answers_at_its_address(shell: Shell, serve: Serve):
    """There is no other one to ask."""
    leaves = Leaves(group={ONE: worker(ONE)})
    leaves.group[ONE] = replace(leaves.group[ONE], url=(server := serve(leaves)).url)
    leaves.ends = server.close

    assert "Worker one:8083 has left the group.\n" == shell.done("workers", "relinquish", ONE)


def both(serve: Serve, state: WorkerState, *connectors: str) -> tuple[Leaves, RestServer]:
    """The one that leaves, in this state and with these connectors, and the server of the other, which knows no more; neither has ended."""
    other = FakeHerder()
    stays = serve(other)
    leaves = Leaves()
    ends = serve(leaves)
    leaves.ends = ends.close
    one = worker(ONE, url=ends.url, state=state, connectors=connectors)
    leaves.group |= {ONE: one, TWO: worker(TWO, url=stays.url)}
    other.group |= leaves.group
    return leaves, stays


def test_a_worker_has_left_when_the_others_have_left_too(shell: Shell, serve: Serve):
    """As when all are to end at the same time: nothing listens at any address."""
    leaves, stays = both(serve, ACTIVE, "a")
    own = leaves.ends

    def all_end() -> None:
        stays.close()
        own()

    leaves.ends = all_end

    shown = shell.done("workers", "relinquish", ONE, "--timeout", 15)
    assert "Worker one:8083 has left the group.\n" == shown


def test_a_worker_that_has_handed_over_and_ended_has_left(shell: Shell, serve: Serve):
    """The others may learn of it seconds later."""
    both(serve, LEAVING)

    shown = shell.done("workers", "relinquish", ONE, "--timeout", 15)
    assert "Worker one:8083 has left the group.\n" == shown


def test_a_worker_that_ended_with_connectors_has_not_left(shell: Shell, serve: Serve):
    """It may have been killed: the others know when it is gone."""
    leaves, _ = both(serve, LEAVING, "a")

    shown = shell.failed("workers", "relinquish", ONE, "--timeout", 3)
    assert "has not left within 3 s. It is LEAVING and still runs a." in shown
    assert leaves.has_ended


def test_a_worker_that_never_answered_is_not_known_to_have_left(shell: Shell, serve: Serve):
    """Its address may be one that cannot be reached from here."""
    asked = Leaves(group={ONE: worker(ONE, url="http://127.0.0.1:1")})
    server = serve(asked)
    asked.group[TWO] = worker(TWO, url=server.url)
    asked.ends = server.close

    shown = shell.failed("workers", "relinquish", ONE, "--timeout", 3)
    assert "has not left within 3 s." in shown
    assert asked.has_ended


def test_a_worker_that_was_taken_back_meanwhile_has_not_left(shell: Shell, serve: Serve):
    """Someone else has had it rejoin."""
    serve(Turns(group=group(ACTIVE), turns=[group(ACTIVE), group(LEAVING, "a"), group(ACTIVE)]))

    shown = shell.failed("workers", "relinquish", ONE)
    assert shown.startswith(
        "headrace: Worker one:8083 takes connectors again: someone had it rejoin"
    )


def test_a_worker_is_taken_back(shell: Shell, serve: Serve):
    """And one that is unknown is not."""
    herder = FakeHerder(group=group(LEAVING))
    serve(herder)

    assert "Worker one:8083 takes connectors again.\n" == shell.done("workers", "rejoin", ONE)
    assert [("rejoin", ONE)] == herder.calls
    assert "headrace: Unknown worker x:1.\n" == shell.failed("workers", "rejoin", "x:1")
    assert "headrace: Unknown worker x:1.\n" == shell.failed("workers", "relinquish", "x:1")


def test_a_worker_without_these_paths_is_told_as_such(shell: Shell, serve: Serve):
    """They may be at other listeners."""
    herder = FakeHerder()
    listeners = {"listeners": "http://127.0.0.1:0", "admin.listeners": ""}
    server = RestServer(herder, RestConfig.parse(listeners))
    server.start()
    try:
        shown = shell.failed("workers", "list", "--url", server.url)
    finally:
        server.close()

    assert "admin.listeners may have moved it" in shown


def test_ids_are_completed(serve: Serve):
    """Those of the group."""
    url = serve(FakeHerder(group=group(ACTIVE))).url
    context = click.Context(rejoin)
    [argument] = [each for each in rejoin.params if each.name == "worker"]
    context.params = {"url": url}

    assert [ONE] == [each.value for each in argument.shell_complete(context, "o")]
    assert [ONE, TWO] == [each.value for each in argument.shell_complete(context, "")]


@pytest.mark.parametrize(
    ("was", "state", "stay", "expected"),
    [
        (ACTIVE, ACTIVE, False, Progress.WAITS),
        (ACTIVE, LEAVING, False, Progress.WAITS),
        (ACTIVE, LEAVING, True, Progress.IS_EMPTY),
        (ACTIVE, ARRIVING, False, Progress.HAS_LEFT),
        (ARRIVING, ARRIVING, False, Progress.WAITS),
        (ARRIVING, ACTIVE, False, Progress.WAITS),
        (LEAVING, ARRIVING, False, Progress.HAS_LEFT),
        (LEAVING, ARRIVING, True, Progress.IS_BACK),
        (LEAVING, ACTIVE, False, Progress.IS_BACK),
        (LEAVING, WorkerState.UNREACHABLE, False, Progress.WAITS),
        (LEAVING, ACTIVE, True, Progress.IS_BACK),
    ],
)
def test_how_far_a_worker_is(
    was: WorkerState, state: WorkerState, *, stay: bool, expected: Progress
):
    """A service starts it again at once; someone else may have it rejoin."""
    found = Listed(id=ONE, url="", version="", slots=1, is_leader=False, state=state, connectors=[])

    assert expected is progress(found, stay=stay, was=was)
