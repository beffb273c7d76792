"""A secret is searched for in all that a worker answers, logs, stores and gives to Spark."""

from __future__ import annotations

import io
import json
import logging
import pickle
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import httpx
import pytest

from doubles.thread_engine import ThreadEngine
from headrace.connect.connector import Plan
from headrace.herder.services import KafkaServices, LocalServices
from headrace.herder.worker_herder import WorkerHerder
from headrace.observe.event_log import EventLog
from headrace.observe.events import to_all
from headrace.observe.log_format import configure_logging
from headrace.offsets.administration import OffsetChanges
from headrace.plugins import PluginConnectorValidator, checked_worker
from headrace.rest.config import RestConfig
from headrace.rest.server import RestServer
from headrace.runtime.services import Timing
from headrace.storage.sqlite import SqliteStorage
from headrace.task.slot_report import SlotReport
from headrace.task.slot_work import SlotTicket
from headrace.task.sql.step import SqlStage
from headrace.task.worker_task import run_slot
from runtime.desk import Desk
from waiting import until

# Quotes and a letter outside of ASCII are written otherwise in JSON and by repr.
PASSWORD = "kän'ary\"1\\2"
PIN = "canary-in-the-mine"
LEAKY = "herder.leaky:LeakyConnector"
EVERYWHERE = (
    "config.action.reload",
    "connector.class",
    "errors.tolerance",
    "exactly.once.support",
    "key.converter",
    "name",
    "predicates",
    "predicates.p.type",
    "producer.override.acks",
    "tasks.max",
    "topic.creation.groups",
    "transforms",
    "transforms.a.predicate",
    "transforms.a.type",
)
SHOWN = {"password": "${env:HEADRACE_CANARY}", "pin": "${file:%s:pin}"}


class SpyingEngine(ThreadEngine):
    """Keeps what Spark would carry."""

    def __init__(self) -> None:
        super().__init__()
        self.carried: list[SlotTicket | SlotReport] = []

    def run(self, tickets: Sequence[SlotTicket], sql_stage: SqlStage | None = None) -> None:
        """There and back."""
        self.carried += tickets
        self.carried += [run_slot(each) for each in tickets]


class Watch:
    """A worker whose every output is kept."""

    def __init__(self, folder: Path, opened: ExitStack, *, as_json: bool) -> None:
        self.told = io.StringIO()
        self.engine = SpyingEngine()
        self._folder = folder
        (folder / "secrets.properties").write_text(f"pin={PIN}\n", "utf-8")
        configure_logging("DEBUG", as_json=as_json, stream=self.told)
        config = checked_worker(
            {
                "key.converter": "string",
                "value.converter": "string",
                "exactly.once.source.support": "disabled",
                "plugin.modules": "herder.leaky",
                "config.providers": "env,file",
                "config.providers.env.class": "env",
                "config.providers.file.class": "file",
                "producer.sasl.password": "${env:HEADRACE_CANARY}",
            }
        )
        storage = SqliteStorage(folder / "state.db")
        opened.callback(storage.close)
        desk = Desk(lambda *_: None, lambda _: Plan(), once=False, timing=Timing(idle_poll=0.01))
        opened.callback(desk.channel.close)
        services = replace(
            desk.services(),
            engine=self.engine,
            task_counts=storage.configs,
            statuses=storage.statuses,
            emit=to_all(EventLog()),
        )
        local = LocalServices(
            configs=storage.configs,
            statuses=storage.statuses,
            topics=storage.topics,
            validator=PluginConnectorValidator(config, "g"),
            worker_id="w",
            grace=0.5,
        )
        changes = OffsetChanges(services, storage.changes)
        herder = WorkerHerder(local, lambda: KafkaServices(services=services, changes=changes))
        herder.start()
        herder.ready()
        opened.callback(herder.close)
        server = RestServer(herder, RestConfig.parse({"listeners": "http://127.0.0.1:0"}))
        server.start()
        opened.callback(server.close)
        self._client = opened.enter_context(httpx.Client(base_url=server.url, timeout=20))
        self.answers: list[str] = []

    def ask(self, method: str, path: str, body: object = None) -> httpx.Response:
        """One request; its answer is kept."""
        answer = (
            self._client.request(method, path, json=body)
            if body is not None
            else (self._client.request(method, path))
        )
        self.answers.append(answer.text)
        return answer

    def config(self, **more: str) -> dict[str, str]:
        """The leaky connector's, named ``c``."""
        secrets = {
            key: each.replace("%s", str(self._folder / "secrets.properties"))
            for key, each in SHOWN.items()
        }
        return {"name": "c", "connector.class": LEAKY, **secrets, **more}

    def everything(self) -> dict[str, str]:
        """All that came out, by where."""
        stored = b"".join(each.read_bytes() for each in self._folder.glob("state.db*"))
        return {
            "answers": "\n".join(self.answers),
            "log": self.told.getvalue(),
            "store": stored.decode("utf-8", "replace"),
            "spark": repr(self.engine.carried)
            + pickle.dumps(self.engine.carried).decode("latin-1"),
        }


@pytest.fixture(params=[False, True], ids=["words", "json"])
def watch(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Watch]:
    """A worker, with its log in one of the two forms."""
    monkeypatch.setenv("HEADRACE_CANARY", PASSWORD)
    root = logging.getLogger()
    before = (root.level, root.handlers[:])
    try:
        with ExitStack() as opened:
            yield Watch(tmp_path, opened, as_json=request.param)
    finally:
        root.setLevel(before[0])
        root.handlers[:] = before[1]


def status(watch: Watch) -> str:
    """The connector's state."""
    return watch.ask("GET", "connectors/c/status").json()["connector"]["state"]


def assert_kept(watch: Watch) -> None:
    """Neither secret is anywhere, in any of the ways in which texts are quoted."""
    for where, text in watch.everything().items():
        for part in (
            PIN,
            "canary-in",
            "kän'ary",
            "k\\u00e4n'ary",
            "k\\xe4n'ary",
            'ary"1',
            'ary\\"1',
        ):
            at = text.find(part)
            assert at < 0, f"{part} is in the {where}: …{text[max(at - 200, 0) : at + 60]}"


def test_a_failing_task_shows_no_secret(watch: Watch) -> None:
    """Its trace, the log lines of both sides, its configuration, and what Spark carries show placeholders."""
    # There is no broker, and before a task starts only headrace's own sender needs one.
    config = watch.config(**{"headrace.sender": "client"})
    assert 201 == watch.ask("POST", "connectors", {"name": "c", "config": config}).status_code
    until(lambda: status(watch) == "FAILED")
    tasks = watch.ask("GET", "connectors/c/tasks").json()
    for path in ("connectors?expand=info&expand=status", "connectors/c", "connectors/c/config"):
        watch.ask("GET", path)

    [task] = watch.ask("GET", "connectors/c/status").json()["tasks"]
    file = watch.config()["pin"]
    assert f"cannot log in at https://me:${{env:HEADRACE_CANARY}}@{file}" in task["trace"]
    assert file == tasks[0]["config"]["pin.of.task"] == tasks[0]["config"]["pin"]
    assert "A task starts with" in watch.told.getvalue()
    assert "The connector starts with" in watch.told.getvalue()
    assert watch.engine.carried
    assert_kept(watch)


def test_a_connector_that_cannot_start_shows_no_secret(watch: Watch) -> None:
    """Though its error's words are not its own."""
    watch.ask("PUT", "connectors/c/config", watch.config(leak="start"))
    until(lambda: status(watch) == "FAILED")

    assert "${env:HEADRACE_CANARY}" in watch.answers[-1]
    assert_kept(watch)


def test_what_is_refused_shows_no_secret(watch: Watch) -> None:
    """Neither a validation, nor a creation, nor a class that fails while it is asked."""
    wrong = [
        watch.config(count=SHOWN["password"], **{"tasks.max": SHOWN["password"]}),
        watch.config(check="yes"),
        watch.config(leak="problems"),
        watch.config(**{"key.converter": SHOWN["password"]}),
        watch.config(**{"connector.class": SHOWN["password"]}),
        watch.config(**{"producer.override.sasl.jaas.config": SHOWN["password"]}),
    ]
    for each in wrong:
        watch.ask("PUT", "connector-plugins/LeakyConnector/config/validate", each)
        assert 400 <= watch.ask("POST", "connectors", {"name": "c", "config": each}).status_code
    assert any("Not a number of type INT" in each for each in watch.answers)
    assert any("what is ${file:" in each for each in watch.answers)

    assert_kept(watch)


@pytest.mark.parametrize("secret", SHOWN)
def test_a_placeholder_anywhere_shows_no_secret(watch: Watch, secret: str) -> None:
    """In whichever key, and however it is sent: validated, created, put, or patched into what is there."""
    file = watch.config()[secret]
    assert 201 == watch.ask("PUT", "connectors/c/config", watch.config()).status_code
    for key in EVERYWHERE:
        config = watch.config(**{"transforms": "a", "predicates": "p", key: file})
        patch = {key: file}
        watch.ask("PUT", "connector-plugins/LeakyConnector/config/validate", config)
        watch.ask("POST", "connectors", {"name": "d", "config": {**config, "name": "d", **patch}})
        watch.ask("PUT", "connectors/d/config", config)
        watch.ask("PATCH", "connectors/c/config", patch)
        watch.ask("PUT", "connectors/c/config", watch.config(**patch))
    for path in ("connectors?expand=info&expand=status", "connectors/c", "connectors/c/tasks"):
        watch.ask("GET", path)

    assert any(
        f"Transforms: {file}" in json.loads(each).get("groups", ()) for each in watch.answers
    )
    assert_kept(watch)


def test_offsets_that_are_refused_show_no_secret(watch: Watch) -> None:
    """Not in a creation either, and not in the history."""
    watch.ask(
        "POST", "connectors", {"name": "c", "config": watch.config(), "initial_state": "STOPPED"}
    )
    offsets = [{"partition": {"a": 1}, "offset": {"b": 2}}]
    refused = watch.ask("PATCH", "connectors/c/offsets", {"offsets": offsets})
    also = watch.ask(
        "POST",
        "connectors",
        {"name": "d", "config": watch.config(name="d"), "initial_offsets": offsets},
    )

    assert "allows no offsets" in refused.text
    assert "allows no offsets" in also.text
    assert_kept(watch)
