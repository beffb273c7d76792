"""The description of the REST API, and a worker to hold against it."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

from headrace.herder.answers import TargetState
from headrace.herder.protocol import Herder
from headrace.herder.requests import CreateRequest, OffsetChange
from headrace.herder.standalone import Standalone
from headrace.herder.statuses import connector_snapshots
from headrace.observe.counts import Counts
from headrace.observe.log_levels import LEVELS, Levels
from headrace.observe.metrics import Metrics
from headrace.plugins import PluginConnectorValidator, checked_worker
from headrace.rest.config import RestConfig
from headrace.rest.server import RestServer
from headrace.storage.memory import MemoryChangeStore, MemoryConfigStore, MemoryOffsetStore
from herder.stage import Stage
from offsets import changing

DESCRIBED: dict[str, Any] = json.loads(files("headrace.rest").joinpath("openapi.json").read_text())
OPERATIONS = [
    (method, path)
    for path, item in DESCRIBED["paths"].items()
    for method in item
    if method != "parameters"
]
CONFIG: dict[str, str | None] = {
    "connector.class": "FileStreamSource",
    "file": "/nowhere/a.txt",
    "topic": "t",
    "tasks.max": "1",
}
OFFSET = OffsetChange(partition={"filename": "/nowhere/a.txt"}, offset={"position": 7})
# What a request may well name, and what it may well bring, beside all that can be made up.
NAMED: dict[str, Sequence[object]] = {
    "connector": ["running", "stopped"],
    "task": [0],
    "plugin": ["FileStreamSource", "StringConverter"],
    "logger": ["root", "some"],
    "worker": ["w"],
}
OFFSETS = [{"partition": OFFSET.partition, "offset": OFFSET.offset}]
BROUGHT: dict[str, Sequence[object]] = {
    "createConnector": [
        {"name": "new", "config": CONFIG},
        {"name": "new", "config": CONFIG, "initial_offsets": OFFSETS},
        {"name": "running", "config": CONFIG},
    ],
    "putConnectorConfig": [CONFIG, {**CONFIG, "wrong": 1, "tasks.max": 0}],
    "patchConnectorConfig": [{"tasks.max": 2}, {"topic": None}],
    "alterOffsets": [{"offsets": OFFSETS}, {"offsets": [{**OFFSETS[0], "offset": None}]}],
    "undoOffsets": [{"change": 1}, {"change": 1, "force": True}],
    "validateConfig": [CONFIG, {**CONFIG, "topic": None}],
    "setLoggerLevel": [{"level": each} for each in LEVELS],
}


def resolved(part: dict[str, Any]) -> dict[str, Any]:
    """A part of the description, or what it refers to."""
    if "$ref" not in part:
        return part
    found = DESCRIBED
    for each in part["$ref"].removeprefix("#/").split("/"):
        found = found[each]
    return found


def parameters(method: str, path: str, place: str) -> list[dict[str, Any]]:
    """The parameters of an operation in its *place*, ``path`` or ``query``."""
    item = DESCRIBED["paths"][path]
    shown = [*item.get("parameters", ()), *item[method].get("parameters", ())]
    return [each for each in map(resolved, shown) if each["in"] == place]


def own_levels() -> Levels:
    """Of loggers that no one else has: any level may be requested."""
    root = logging.RootLogger(logging.WARNING)
    root.manager = logging.Manager(root)
    return Levels(root)


@dataclass
class DescribedWorker:
    """A worker that answers over a socket; its connectors only say that they run."""

    url: str
    herder: Herder

    def settle(self) -> None:
        """Have just the two connectors, one of them stopped and with offsets."""
        for name in {*self.herder.connectors()} - {"running", "stopped"}:
            self.herder.delete(name)
        self.herder.put_config("running", CONFIG)
        self.herder.resume("running")
        if "stopped" in self.herder.connectors():
            self.herder.stop("stopped")
            return
        self.herder.create(
            CreateRequest(name="stopped", config=CONFIG, initial_state=TargetState.STOPPED)
        )
        self.herder.alter_offsets("stopped", [OFFSET])


class Among(Standalone):
    """As if there were others, who could take over."""

    def relinquish(self, worker: str, *, stay: bool = False) -> None:
        """Take it as arranged, for a known worker."""
        self.rejoin(worker)


@contextmanager
def described_worker() -> Iterator[DescribedWorker]:
    """A real herder, with real validation and changes of offsets, on stores in memory."""
    offsets, configs = MemoryOffsetStore(), MemoryConfigStore()
    stores = changing.Stage(
        changes_store=MemoryChangeStore(offsets, configs), offsets=offsets, configs=configs
    )
    config = checked_worker({"key.converter": "string", "value.converter": "string"})
    stage = Stage(configs=configs, judge=PluginConnectorValidator(config, "g"))
    stage.changes = stores.changes()
    with stage.herder(coordinate=Among) as herder:
        server = RestServer(
            herder,
            RestConfig.parse({"listeners": "http://127.0.0.1:0"}),
            levels=own_levels(),
            metrics=Metrics(Counts(), lambda: connector_snapshots(herder)).text,
        )
        server.start()
        try:
            yield DescribedWorker(server.url.rstrip("/"), herder)
        finally:
            server.close()
