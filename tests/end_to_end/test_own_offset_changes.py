"""Offsets of a connector with a topic of its own, read and changed over HTTP: both places afterwards (KIP-618, KIP-875)."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path

import httpx
import pytest

from doubles.puppets import PLANNED, SOURCE, Puppet, puppet, reading
from end_to_end.live import Life, numbers
from end_to_end.places import in_topic
from end_to_end.served import served
from headrace.cli.main import outcome
from headrace.storage.sqlite_file import seen_offsets
from headrace.testing.judge import committed_records
from waiting import until

pytestmark = pytest.mark.broker

KEY = "offsets.storage.topic"
TOTAL = 30
MODES = {
    "exactly once": {},
    "at least once, topic": {"exactly.once.source.support": "disabled"},
    "at least once, file": {"exactly.once.source.support": "disabled"},
}
PARTITION = json.dumps(dict(SOURCE))


@dataclass
class Stage:
    """A running worker, and who asks it."""

    life: Life
    http: httpx.Client
    numbers: Iterator[int] = field(default_factory=count)

    def new_name(self) -> str:
        """A connector's, and its topic's; its own topic of offsets has ``-own`` behind it."""
        return f"{self.life.name}-{next(self.numbers)}"

    def run(self, name: str, **more: str) -> None:
        """Let it read all there is, and stop it."""
        puppet(name, reading(name, TOTAL))
        self.configure(name, **more)
        self.await_records(name, TOTAL)
        self.ask("PUT", name, "stop")

    def await_records(self, name: str, total: int) -> None:
        """Return when so many are in its topic."""
        until(lambda: len(self.life.values(name)) == total)

    def configure(self, name: str, **more: str) -> None:
        """Create it, or give it another configuration."""
        config = {"connector.class": PLANNED, "topic": name, "tasks.max": "1"}
        self.ask("PUT", name, "config", body={**config, **more})

    def ask(self, method: str, name: str, *path: str, body: object = None) -> httpx.Response:
        """Ask something about the connector, which must not be refused."""
        answer = self.http.request(method, "/".join(["/connectors", name, *path]), json=body)
        assert answer.is_success, answer.text
        return answer

    def told(self, name: str) -> object:
        """The offsets that the worker tells."""
        return self.ask("GET", name, "offsets").json()["offsets"]

    def alter(self, name: str, offset: Mapping[str, object] | None) -> None:
        """Change the one offset."""
        change = {"partition": dict(SOURCE), "offset": offset}
        self.ask("PATCH", name, "offsets", body={"offsets": [change]})

    def own(self, name: str) -> Mapping[str, object]:
        """What the connector's topic has."""
        return in_topic(self.life.bootstrap, f"{name}-own", name)

    def worker_s(self, name: str) -> Mapping[str, object]:
        """What the worker's store has."""
        topic = self.life.worker.get("offset.storage.topic")
        if topic is not None:
            return in_topic(self.life.bootstrap, topic, name)
        found = seen_offsets(self.life.folder / "state.db", name)
        return {json.dumps(dict(each)): offset for each, offset in found.items()}

    def has_in_both(self, name: str, offset: Mapping[str, object] | None) -> None:
        """Assert that both have it and nothing else; copies come a little later."""
        expected = {} if offset is None else {PARTITION: offset}
        until(lambda: expected == self.worker_s(name))
        assert expected == self.own(name)


@pytest.fixture(scope="module", params=MODES)
def stage(
    bootstrap: str, tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest
) -> Iterator[Stage]:
    """One worker for each mode."""
    life = Life(bootstrap, tmp_path_factory.mktemp("worker"), worker=dict(MODES[request.param]))
    if "file" not in request.param:
        life.worker["offset.storage.topic"] = f"{life.name}-worker-s"
    with served(life) as http:
        yield Stage(life, http)


@pytest.fixture
def name(stage: Stage) -> str:
    """A connector with a topic of its own that has read all and is stopped."""
    name = stage.new_name()
    stage.run(name, **{KEY: f"{name}-own"})
    return name


def test_what_is_told_is_what_both_places_have(stage: Stage, name: str) -> None:
    """Of a connector that has stopped."""
    assert [{"partition": dict(SOURCE), "offset": {"next": TOTAL}}] == stage.told(name)
    stage.has_in_both(name, {"next": TOTAL})


def test_an_altered_offset_is_in_both_places_and_counts(stage: Stage, name: str) -> None:
    """Also an earlier one: the connector reads again from there."""
    stage.alter(name, {"next": 10})
    stage.has_in_both(name, {"next": 10})
    stage.ask("PUT", name, "resume")
    stage.await_records(name, TOTAL + 20)

    assert [*numbers(TOTAL), *numbers(TOTAL, start=10)] == stage.life.values(name)


def test_a_reset_leaves_nothing_in_either_place(stage: Stage, name: str) -> None:
    """All is read again; the copy does not count as a beginning."""
    stage.ask("DELETE", name, "offsets")
    told = stage.told(name)
    stage.has_in_both(name, None)
    stage.ask("PUT", name, "resume")
    stage.await_records(name, 2 * TOTAL)

    assert [] == told
    assert numbers(TOTAL) * 2 == stage.life.values(name)


def test_a_removal_is_in_the_worker_s_topic_before_it_is_in_the_connector_s(
    stage: Stage, name: str
) -> None:
    """A worker that dies in between leaves the offset where it counts, and not where it would come back."""
    topic = stage.life.worker.get("offset.storage.topic")
    if topic is None:
        pytest.skip("A file has no times.")
    stage.alter(name, None)
    key = json.dumps([name, dict(SOURCE)], separators=(",", ":")).encode()
    removed = [
        each.timestamp
        for place in (topic, f"{name}-own")
        for each in committed_records(stage.life.bootstrap, place)
        if each.key == key and each.value is None
    ]

    assert 2 == len(removed)
    assert sorted(removed) == removed


def test_an_undone_reset_is_undone_in_both_places(stage: Stage, name: str) -> None:
    """The history tells what there was in the two together."""
    stage.ask("DELETE", name, "offsets")
    (entry,) = stage.ask("GET", name, "offsets", "history").json()["history"]
    stage.ask("POST", name, "offsets", "undo", body={"change": entry["change"]})

    stage.has_in_both(name, {"next": TOTAL})
    assert [{"partition": dict(SOURCE), "offset": {"next": TOTAL}}] == stage.told(name)


def test_imported_offsets_are_in_both_places(stage: Stage, name: str, tmp_path: Path) -> None:
    """An export of one connector, taken by another."""
    url, file, taker = str(stage.http.base_url), str(tmp_path / "offsets"), stage.new_name()
    puppet(taker, Puppet())
    stage.configure(taker, **{KEY: f"{taker}-own"})
    stage.ask("PUT", taker, "stop")

    assert 0 == outcome(["offsets", "export", name, file, "--url", url])
    assert 0 == outcome(["offsets", "import", taker, file, "--url", url])
    stage.has_in_both(taker, {"next": TOTAL})


def test_offsets_from_before_the_own_topic_are_told_altered_and_reset(stage: Stage) -> None:
    """They are in the worker's store alone; a change makes the topic, a look does not."""
    name = stage.new_name()
    stage.run(name)
    stage.configure(name, **{KEY: f"{name}-own"})
    before, own_before = stage.told(name), stage.own(name)
    stage.alter(name, {"next": 20})
    stage.has_in_both(name, {"next": 20})
    stage.ask("DELETE", name, "offsets")
    stage.has_in_both(name, None)

    assert [{"partition": dict(SOURCE), "offset": {"next": TOTAL}}] == before
    assert ({}, []) == (own_before, stage.told(name))
