"""SIGKILL to a worker at each step of a request: afterwards the connector is as before, or as asked for."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import httpx
import pytest

from end_to_end.dying import DyingWorker, Seen, initial
from waiting import until

pytestmark = [pytest.mark.broker, pytest.mark.kill, pytest.mark.slow]

# More than any of these requests takes, so that a test which never survives ends.
MOST_STEPS = 40
# A worker that has to be started for each step takes long, so that a case plays every fourth one.
_STRIDE = 4
OLD = {"a": 1, "b": 5}


@dataclass(frozen=True, kw_only=True)
class Case:
    """A request about a connector that is as *old* says, and is to be as *new* says."""

    method: str
    path: str = ""
    body: object = None
    old: Seen = field(default_factory=Seen)
    new: Seen
    initial: list[object] | None = None

    def prepare(self, worker: DyingWorker, name: str) -> None:
        """Make it as before, offsets of an earlier connector of the name included."""
        body = {
            "name": name,
            "config": worker.config_of(name, self.old.topic or "t"),
            "initial_state": self.old.state or "STOPPED",
            "initial_offsets": initial(**self.old.offsets) or None,
        }
        worker.ask("POST", "/connectors", body)
        if self.old.topic is None:
            worker.ask("DELETE", f"/connectors/{name}")
        assert self.old == worker.seen(name)

    def ask(self, worker: DyingWorker, name: str, *, dying: DyingWorker | None = None) -> bool:
        """Send it; whether it was answered before the worker died, or the *dying* one that it sends it on to."""
        config = worker.config_of(name, self.new.topic or "t")
        if self.method == "POST":
            body: object = {"name": name, "config": config, "initial_state": self.new.state}
            if self.initial:
                body = {**body, "initial_offsets": self.initial}
            return worker.asked_until_death_of(dying or worker, "POST", "/connectors", body)
        body = config if self.method == "PUT" else self.body
        return worker.asked_until_death_of(
            dying or worker, self.method, f"/connectors/{name}{self.path}", body
        )


RUNS = Seen(topic="t", state="RUNNING", offsets=OLD)
STOPPED = Seen(topic="t", state="STOPPED", offsets=OLD)
CASES = {
    "create": Case(method="POST", old=Seen(offsets=OLD), new=RUNS),
    "create with initial_offsets": Case(
        method="POST",
        initial=[*initial(b=7, n=None)],
        old=Seen(offsets=OLD),
        new=Seen(topic="t", state="PAUSED", offsets={"b": 7}),
    ),
    "reconfigure": Case(
        method="PUT",
        path="/config",
        old=RUNS,
        new=Seen(topic="u", state="RUNNING", offsets=OLD),
    ),
    "alter": Case(
        method="PATCH",
        path="/offsets",
        body={"offsets": initial(a=2, b=None)},
        old=STOPPED,
        new=Seen(topic="t", state="STOPPED", offsets={"a": 2}),
    ),
    "reset": Case(
        method="DELETE", path="/offsets", old=STOPPED, new=Seen(topic="t", state="STOPPED")
    ),
    "delete": Case(method="DELETE", old=RUNS, new=Seen(offsets=OLD)),
}


@pytest.fixture
def group() -> str:
    """A worker's name of the test's own."""
    return f"dying-{uuid.uuid4().hex[:8]}"


@pytest.fixture
def command() -> str:
    """What is run."""
    return "run"


@pytest.fixture
def worker(bootstrap: str, tmp_path: Path, group: str, command: str) -> Iterator[DyingWorker]:
    """One that has been started."""
    made = DyingWorker(bootstrap, tmp_path, group, command=command, is_alone=True)
    made.start()
    yield made
    made.end()


@pytest.mark.sampled(1)
@pytest.mark.timeout(600)
@pytest.mark.parametrize("command", ["run", "worker"])
@pytest.mark.parametrize("asked", CASES)
def test_a_kill_at_any_step_leaves_the_old_state_or_the_new_one(
    worker: DyingWorker, asked: str
) -> None:
    """Configuration, state, and offsets in Kafka go together; what was answered has been done."""
    case, left = CASES[asked], list[Seen]()
    for step in range(1, MOST_STEPS):
        name = f"c{step}"
        case.prepare(worker, name)
        worker.die_at(step)
        is_answered = case.ask(worker, name)
        # What follows the answer, such as the start of what was asked for, has steps, too.
        until(lambda: worker.is_dead or settled(worker, name, case.new))  # noqa: B023 (called at once)
        worker.die_at(None)
        has_died = worker.is_dead
        if has_died:
            worker.start()
        found = worker.seen(name)
        left.append(found)
        assert found in ([case.new] if is_answered else [case.old, case.new]), f"step {step}"
        if not has_died:
            break
    else:
        pytest.fail("It died at every step.")
    assert case.old in left, "no kill came before the change"
    assert left.count(case.new) > 1, "no kill came behind the change"


def settled(worker: DyingWorker, name: str, wanted: Seen) -> bool:
    """Whether the connector has come to its new state; not yet when the worker is dying."""
    try:
        return wanted == worker.seen(name)
    except httpx.TransportError:
        # Its connections end a moment before its process does.
        until(lambda: worker.is_dead, seconds=5)
        return True


@pytest.mark.sampled(1)
@pytest.mark.timeout(600)
@pytest.mark.parametrize("first", range(1, _STRIDE + 1))
def test_a_file_with_initial_offsets_survives_a_kill_at_any_step(
    worker: DyingWorker, first: int
) -> None:
    """The same command once more has the connector as the file says, whatever step the first one came to.

    KIP-995's sixth: the standalone command accepts initial_offsets in the JSON file.
    """
    wanted = Seen(topic="t", state="STOPPED", offsets={"a": 7})
    for step in range(first, MOST_STEPS, _STRIDE):
        name = f"c{step}"
        worker.end()
        worker.files = [connector_file(worker, name)]
        worker.die_at(step)
        worker.start()
        until(lambda: worker.is_dead or has(worker, name), seconds=60)  # noqa: B023 (called at once)
        worker.die_at(None)
        has_died = worker.is_dead
        if has_died:
            worker.start()
        until(lambda: has(worker, name), seconds=60)  # noqa: B023 (called at once)
        assert wanted == worker.seen(name), f"step {step}"
        if not has_died:
            assert step > 5, "nearly nothing was interrupted"
            return
        # So that the next start has nothing else to do.
        worker.ask("DELETE", f"/connectors/{name}")
    pytest.fail("It died at every step.")


def connector_file(worker: DyingWorker, name: str) -> Path:
    """A file that creates a connector with offsets."""
    path = worker.folder / f"{name}.json"
    content = {
        "name": name,
        "config": worker.config_of(name, "t"),
        "initial_state": "STOPPED",
        "initial_offsets": initial(a=7),
    }
    path.write_text(json.dumps(content))
    return path


def has(worker: DyingWorker, name: str) -> bool:
    """Whether the worker says that it has the connector."""
    try:
        return name in worker.ask("GET", "/connectors").json()
    except httpx.TransportError:
        # Its connections end a moment before its process does.
        until(lambda: worker.is_dead, seconds=5)
        return False
