"""A connector is created with offsets over HTTP (KIP-995): its test plan, and a failure at each of the steps.

Its points about distributed mode come with that mode; the command line's is in ``tests/end_to_end``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import httpx
import pytest

from doubles.puppets import PLANNED
from headrace.config.providers import Resolution
from headrace.connect.errors import OffsetsError, RetriableError
from headrace.rest.config import RestConfig
from headrace.rest.server import RestServer
from headrace.runtime.services import RunSpec
from headrace.storage.memory import MemoryChangeStore, MemoryConfigStore, MemoryOffsetStore
from herder.stage import Judge, Stage
from offsets import changing
from offsets.changing import A, Asked, B
from waiting import until

CONFIG = {"connector.class": PLANNED, "tasks.max": "2"}
REMNANTS = {A: {"position": 1}, B: {"position": 5}}
INITIAL = [
    {"partition": {"filename": "b"}, "offset": {"position": 7}},
    {"partition": {"filename": "n"}, "offset": None},
]
SET = "The offsets for this connector have been set successfully"


@dataclass(frozen=True, kw_only=True)
class Scene:
    """A worker behind a real socket. Offsets and their changes are real; a connector only reports that it runs."""

    http: httpx.Client
    stage: Stage
    kept: changing.Stage

    def create(self, **more: object) -> httpx.Response:
        """Ask for ``c`` with offsets."""
        body = {"name": "c", "config": CONFIG, "initial_offsets": INITIAL, **more}
        return self.http.post("/connectors", json=body)

    def get(self, path: str) -> Any:  # noqa: ANN401 (a JSON answer)
        """What is answered there."""
        return self.http.get(path).json()

    @property
    def connector(self) -> Asked:
        """Its hooks are called."""
        assert isinstance(self.stage.judge, Asking)
        return self.stage.judge.connector

    def fail(self, at: str) -> None:
        """Have the broker or the disk refuse at that point."""
        self.kept.faults.at = at
        self.kept.faults.error = lambda: RetriableError("away")

    def history(self) -> list[Mapping[str, Any]]:
        """The changes of the offsets of ``c``."""
        return self.get("/connectors/c/offsets/history").get("history", [])


class Asking(Judge):
    """Makes the connector whose hooks the test has."""

    def __init__(self) -> None:
        self.connector = Asked()

    def run_spec(self, submitted: Resolution) -> RunSpec:
        """With that connector."""
        return replace(super().run_spec(submitted), connector=self.connector)


@pytest.fixture
def scene() -> Iterator[Scene]:
    """A worker without connectors; an earlier ``c`` has left offsets."""
    configs, offsets = MemoryConfigStore(), MemoryOffsetStore()
    stage = Stage(judge=Asking(), configs=configs)
    kept = changing.Stage(
        changes_store=MemoryChangeStore(offsets, configs), offsets=offsets, configs=configs
    )
    kept.put(REMNANTS)
    stage.changes = kept.changes()  # type: ignore[assignment]
    with stage.herder() as herder:
        server = RestServer(herder, RestConfig.parse({"listeners": "http://127.0.0.1:0"}))
        server.start()
        try:
            with httpx.Client(base_url=server.url) as http:
                yield Scene(http=http, stage=stage, kept=kept)
        finally:
            server.close()


def test_create_connector_with_initial_offsets_in_standalone_mode(scene: Scene):
    """KIP-995's first: it runs with these offsets alone, what an earlier one has left is wiped."""
    answer = scene.create()

    assert 200 == answer.status_code
    assert answer.headers["location"].endswith("/connectors/c")
    shown = answer.json()
    assert ("c", SET) == (shown["name"], shown["initial_offsets_response"])
    assert {**CONFIG, "name": "c"} == shown["config"]
    assert {"offsets": INITIAL[:1]} == scene.get("/connectors/c/offsets")
    until(lambda: "RUNNING" == scene.get("/connectors/c/status")["connector"]["state"])


@pytest.mark.parametrize("state", ["RUNNING", "PAUSED", "STOPPED"])
def test_create_connector_with_initial_state_and_initial_offsets_in_standalone_mode(
    scene: Scene, state: str
):
    """KIP-995's second: both hold; a connector that is to run has its offsets before it starts."""
    assert 200 == scene.create(initial_state=state).status_code

    until(lambda: state == scene.get("/connectors/c/status")["connector"]["state"])
    assert {"offsets": INITIAL[:1]} == scene.get("/connectors/c/offsets")
    assert (state == "RUNNING") == bool(scene.stage.running)


def test_a_connector_that_keeps_offsets_elsewhere_is_reported_so(scene: Scene):
    """The other of the seed's two sentences."""
    scene.connector.answer = False
    shown = scene.create().json()["initial_offsets_response"]

    assert shown == (
        "The framework-managed offsets for this connector have been set successfully. However, if this "
        "connector manages offsets externally, they will need to be manually set in the system that the "
        "connector uses."
    )


AWAY = "source connector c"
FAILURES: Mapping[str, tuple[str, int, str]] = {
    "1: validating the config": ("", 400, "Connector configuration is invalid"),
    "2: validating the offsets": ("", 500, "not these"),
    "3: wiping existing offsets": (
        "fence 2",
        500,
        "Failed to perform zombie fencing for source connector prior to modifying offsets",
    ),
    "4: setting the initial offsets": (
        "before commit",
        500,
        f"Timed out while attempting to modify offsets for {AWAY}",
    ),
    "5: writing the config": ("before finish", 500, f"Failed to modify offsets for {AWAY}"),
}


@pytest.mark.parametrize("step", FAILURES)
def test_failure_while_creating_connector_with_initial_offsets_will_clean_up_and_return_error_response(
    scene: Scene, step: str
):
    """KIP-995's fifth: the answer names the step, no connector is there, and the next attempt succeeds.

    Offsets of an earlier connector stay up to step 4; step 5 wipes, and the history has what was there.
    """
    point, status, shown = FAILURES[step]
    config = {**CONFIG, "wrong": "yes"} if step.startswith("1") else CONFIG
    if step.startswith("2"):
        scene.connector.refusal = OffsetsError("not these")
    if point:
        scene.fail(point)
    answer = scene.create(config=config)

    message = answer.json()["message"]
    assert (status, status) == (answer.status_code, answer.json()["error_code"])
    assert message.startswith(shown)
    assert message.endswith(f" (creating connector c failed at step {step})")
    assert [] == scene.get("/connectors")
    assert {} == scene.stage.states()
    assert ({} if step.startswith("5") else REMNANTS) == scene.kept.known()
    assert [] == list(scene.kept.changes_store.open_intents())
    assert [False] * len(scene.history()) == [each["done"] for each in scene.history()]
    check_restorable(scene, has_entry=step[0] in "45")

    scene.connector.refusal = None
    assert 200 == scene.create().status_code
    assert {B: {"position": 7}} == scene.kept.known()


def check_restorable(scene: Scene, *, has_entry: bool) -> None:
    """What the earlier connector had is in the history, where something was written."""
    found = [
        {each["partition"]["filename"]: each["before"]["position"] for each in change["offsets"]}
        for change in scene.history()
    ]
    assert ([{"a": 1, "b": 5}] if has_entry else []) == found


def test_a_name_that_is_taken_is_step_one_and_nothing_is_touched(scene: Scene):
    """Not the offsets of the connector that is there, either."""
    scene.create()
    again = scene.create(
        initial_offsets=[{"partition": {"filename": "b"}, "offset": {"position": 9}}]
    )

    assert 409 == again.status_code
    assert again.json()["message"] == (
        "Connector c already exists (creating connector c failed at step 1: validating the config)"
    )
    assert {B: {"position": 7}} == scene.kept.known()
    assert 1 == len(scene.history())


@pytest.mark.parametrize(
    "offsets",
    [
        [],
        {},
        "x",
        [7],
        [{"partition": {}, "offset": {}, "x": 1}],
        [{"partition": {"filename": "a"}}],
        [{"offset": {}}],
    ],
)
def test_a_malformed_form_is_a_bad_request_and_nothing_is_touched(scene: Scene, offsets: object):
    """Before the first step."""
    answer = scene.create(initial_offsets=offsets)

    assert 400 == answer.status_code
    assert [] == scene.get("/connectors")
    assert scene.kept.known() == REMNANTS


def test_a_creation_without_initial_offsets_leaves_what_there_was(scene: Scene):
    """As Kafka Connect does; the answer has nothing to say about offsets."""
    answer = scene.create(initial_offsets=None)

    assert 201 == answer.status_code
    assert "initial_offsets_response" not in answer.json()
    assert scene.kept.known() == REMNANTS
