"""Many clients that ask a worker about the same few connectors, and what it may answer them."""

from __future__ import annotations

import random
import re
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any

import httpx

CLIENTS = 50
# Far less than a request waits for the herder: whoever is answered later than this had to wait for nothing.
ANSWER_SECONDS = 60.0
FILES = ("a", "b", "c")

ABSENT = "Connector {c} not found"
UNKNOWN = "Unknown connector {c}"
NOT_THERE = "Unknown connector: {c}"
NO_LEADER = (
    "Cannot complete request momentarily due to no known leader URL, likely because a rebalance was "
    "underway."
)
EXISTS = "Connector {c} already exists"
NOT_STOPPED = (
    "Connectors must be in the STOPPED state before their offsets can be modified. This can be done for "
    "the specified connector by issuing a 'PUT' request to the '/connectors/{c}/stop' endpoint"
)
DONE = (
    "The Connect framework-managed offsets for this connector have been {done} successfully. However, if "
    "this connector manages offsets externally, they will need to be manually {done} in the system that "
    "the connector uses."
)
BACK = "Nothing was changed: the offsets are already those from before change {n}"
NO_CHANGE = "The history of connector {c}'s offsets has no change {n}"
CREATED = "Change {n} is the creation of connector {c}. To undo it, reset the connector's offsets and delete it.{rest}"
MOVED = "Change {n} of connector {c} cannot be undone: offsets have moved since, {rest}"
UNDONE = "Change {n} of connector {c} was already undone{rest}"
NOT_DONE = "Change {n} was not done, so there is nothing to undo"
EARLIER = "Change {n} cannot be undone: it belongs to an earlier connector {c}, {rest}"
OF_CHANGES = {400: [NOT_STOPPED], 404: [ABSENT]}

Allowed = Mapping[int, Sequence[str | None]]

ALLOWED: Mapping[str, Allowed] = {
    "create": {201: [None], 409: [EXISTS]},
    "preset": {
        200: [None],
        409: [EXISTS + " (creating connector {c} failed at step 1: validating the config)"],
    },
    "put": {200: [None], 201: [None]},
    "patch": {200: [None], 404: [ABSENT]},
    "pause": {202: [None], 404: [UNKNOWN]},
    "resume": {202: [None], 404: [UNKNOWN]},
    "stop": {204: [None], 404: [UNKNOWN]},
    "restart": {202: [None], 404: [NOT_THERE]},
    "restart a task": {204: [None], 404: [NOT_THERE, "Unknown task: {c}-0"], 409: [NO_LEADER]},
    "delete": {204: [None], 404: [ABSENT]},
    "alter": {200: [DONE.replace("{done}", "altered")], **OF_CHANGES},
    "reset": {200: [DONE.replace("{done}", "reset")], **OF_CHANGES},
    "undo": {
        200: [DONE.replace("{done}", "restored"), BACK],
        400: [NOT_STOPPED, CREATED, MOVED, UNDONE, NOT_DONE, EARLIER],
        404: [ABSENT, NO_CHANGE],
    },
    "status": {200: [None], 404: ["No status found for connector {c}"]},
    "info": {200: [None], 404: [ABSENT]},
    "tasks": {200: [None], 404: [ABSENT]},
    "offsets": {200: [None], 404: [ABSENT]},
    "list": {200: [None]},
}
"""Statuses and messages that some order of the requests explains; ``None`` for an answer without message."""

# So that changes of offsets, which need a connector that is stopped, are not all refused.
CHANGES = ("alter", "reset", "preset", "undo")
"""Requests that change offsets."""

WEIGHTS = {"stop": 6, "alter": 6, "reset": 3, "undo": 3, "create": 3, "preset": 4, "put": 2}


@dataclass(frozen=True, slots=True, kw_only=True)
class Answered:
    """One request and its answer; *sent* is what was altered to, if anything was."""

    asked: str
    name: str
    status: int
    message: str | None
    sent: int | None = None

    @property
    def is_allowed(self) -> bool:
        """Whether the table has it."""
        patterns = ALLOWED[self.asked].get(self.status, ())
        return any(_matches(each, self.message, self.name) for each in patterns)


@dataclass
class Crowd:
    """Clients of the worker at *url*, of the connectors *configs*: their configurations by name."""

    url: str
    configs: Mapping[str, Mapping[str, str]]
    answers: list[Answered] = field(default_factory=list[Answered])
    _positions: int = 0
    _guard: threading.Lock = field(default_factory=threading.Lock)

    def ask(self, seconds: float, *, at_least: int) -> None:
        """Have all clients ask at once for so long, and so often, and until each kind of change was made.

        Raises what any of them raised.
        """
        deadline = time.monotonic() + seconds

        def client(seed: int) -> None:
            chance = random.Random(seed)
            with httpx.Client(base_url=self.url, timeout=ANSWER_SECONDS) as http:
                while time.monotonic() < deadline or self._is_young(at_least):
                    self.answers.append(self._one(http, chance))

        with ThreadPoolExecutor(CLIENTS) as clients:
            for each in [clients.submit(client, seed) for seed in range(CLIENTS)]:
                each.result()

    def _is_young(self, at_least: int) -> bool:
        made = {each.asked for each in list(self.answers) if each.status == HTTPStatus.OK}
        return len(self.answers) < at_least or not made.issuperset(CHANGES)

    def wrong(self) -> list[Answered]:
        """Answers that no order of the requests explains."""
        return [each for each in self.answers if not each.is_allowed]

    def count(self, name: str, *asked: str, status: int) -> int:
        """How many requests of these kinds got that status."""
        return sum(
            each.name == name and each.asked in asked and each.status == status
            for each in self.answers
        )

    def altered(self, name: str) -> Counter[int]:
        """What the successful changes of that connector altered to."""
        return Counter(
            each.sent
            for each in self.answers
            if each.name == name and each.sent is not None and each.status == 200
        )

    def _one(self, http: httpx.Client, chance: random.Random) -> Answered:
        asked = chance.choices(list(ALLOWED), [WEIGHTS.get(each, 1) for each in ALLOWED])[0]
        name = chance.choice(list(self.configs))
        sent = self._next_position() if asked in {"alter", "preset"} else None
        answer = self._sent(http, asked, name, sent=sent, chance=chance)
        told = answer.json() if answer.content else {}
        message = told.get("message") if isinstance(told, dict) and asked != "list" else None
        return Answered(
            asked=asked, name=name, status=answer.status_code, message=message, sent=sent
        )

    def _sent(
        self,
        http: httpx.Client,
        asked: str,
        name: str,
        *,
        sent: int | None,
        chance: random.Random,
    ) -> httpx.Response:
        path, config = f"/connectors/{name}", self.configs[name]
        offsets = [{"partition": {"file": chance.choice(FILES)}, "offset": {"at": sent}}]
        state = chance.choice(["RUNNING", "PAUSED", "STOPPED"])
        creation = {"name": name, "config": config, "initial_state": state}
        changed = {**config, "tasks.max": chance.choice("12")}
        requests: Mapping[str, Callable[[], httpx.Response]] = {
            "create": lambda: http.post("/connectors", json=creation),
            "preset": lambda: http.post(
                "/connectors", json={**creation, "initial_offsets": offsets}
            ),
            "put": lambda: http.put(f"{path}/config", json=changed),
            "patch": lambda: http.patch(f"{path}/config", json={"tasks.max": "2"}),
            "restart": lambda: http.post(f"{path}/restart?includeTasks=true"),
            "restart a task": lambda: http.post(f"{path}/tasks/0/restart"),
            "delete": lambda: http.delete(path),
            "alter": lambda: http.patch(f"{path}/offsets", json={"offsets": offsets}),
            "reset": lambda: http.delete(f"{path}/offsets"),
            "undo": lambda: _undo(http, path, chance),
            "info": lambda: http.get(path),
            "list": lambda: http.get("/connectors?expand=status&expand=info"),
            **{
                each: lambda each=each: http.put(f"{path}/{each}")
                for each in ("pause", "resume", "stop")
            },
            **{
                each: lambda each=each: http.get(f"{path}/{each}")
                for each in ("status", "tasks", "offsets")
            },
        }
        return requests[asked]()

    def _next_position(self) -> int:
        with self._guard:
            self._positions += 1
            return self._positions


def followed(history: Sequence[Mapping[str, Any]]) -> dict[str, int | None]:
    """The offsets of *history*'s files by what its changes say, the newest first.

    Fails when a change does not begin where the one before it has ended.
    """
    known = dict[str, int | None]()
    for change in reversed(history):
        assert change["done"], f"not done, and nothing failed: {change}"
        for each in change["offsets"]:
            file = each["partition"].get("file")
            if file is None:
                continue
            before, after = (each[key] and each[key]["at"] for key in ("before", "after"))
            assert known.get(file, before) == before, f"{known[file]} lies before {change}"
            known[file] = after
    return known


def _undo(http: httpx.Client, path: str, chance: random.Random) -> httpx.Response:
    history = http.get(f"{path}/offsets/history").json().get("history") or [{"change": 1}]
    change = chance.choice(history[:3])["change"]
    return http.post(
        f"{path}/offsets/undo", json={"change": change, "force": chance.random() < 0.5}
    )


def _matches(pattern: str | None, message: str | None, name: str) -> bool:
    if pattern is None or message is None:
        return pattern is message
    parts = {r"\{c\}": re.escape(name), r"\{n\}": r"\d+", r"\{rest\}": ".*"}
    wanted = re.escape(pattern)
    for hole, filled in parts.items():
        wanted = wanted.replace(hole, filled)
    return re.fullmatch(wanted, message, re.DOTALL) is not None
