"""A stage for end-to-end tests: real files, a real worker, and somebody who kills parts of it."""

from __future__ import annotations

import json
import os
import random
import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from headrace.observe.events import Event, Replanned, SlotClaimed
from headrace.plugins import checked_worker, validated_connector
from headrace.runtime.engine import Engine, Processes
from headrace.runtime.micro_batch import SlotState
from headrace.task.slot_work import SlotTicket
from headrace.task.sql.step import SqlStage
from headrace.testing.judge import Verdict, judged
from headrace.worker import DataPlane, running

# A round is long enough for several transactions before and after a kill, short enough to have many.
RECORDS_PER_SECOND = 8_000
COMMIT_MS = 150
ROUND_SECONDS = 2.0
SENDERS = ("wire", "client")
"""Of connectors; both are in each matrix."""


@dataclass(frozen=True)
class KeptEngine:
    """An engine that outlives the workers that use it."""

    engine: Engine

    @property
    def slots(self) -> int:
        """As the engine has."""
        return self.engine.slots

    @property
    def is_starting(self) -> bool:
        """As the engine is."""
        return self.engine.is_starting

    def run(self, tickets: Sequence[SlotTicket], sql_stage: SqlStage | None = None) -> None:
        """As the engine does."""
        self.engine.run(tickets, sql_stage)

    def close(self) -> None:
        """Leave it open."""


class OutOfReach:
    """Processes that the driver cannot end, as on another machine."""

    def running(self, slot: SlotState) -> bool:
        """Nobody knows."""
        return False

    def end(self, slot: SlotState) -> None:
        """Nobody can."""


@dataclass
class Witness:
    """Hears every event, and lets a test wait for one."""

    events: list[Event] = field(default_factory=list)
    _heard: threading.Condition = field(default_factory=threading.Condition)

    def __call__(self, event: Event) -> None:
        """Hear *event*; from any thread."""
        with self._heard:
            self.events.append(event)
            self._heard.notify_all()

    def wait_for(
        self, condition: Callable[[Event], bool], *, seconds: float = 60.0, since: int = 0
    ) -> Event:
        """The first event that meets *condition*, heard already or soon; fails when there is none.

        Looks at the events behind the first *since*.
        """
        deadline = time.monotonic() + seconds
        seen = since
        with self._heard:
            while True:
                for event in self.events[seen:]:
                    if condition(event):
                        return event
                seen = len(self.events)
                left = deadline - time.monotonic()
                if left <= 0:
                    told = "\n".join(str(each) for each in self.events[-15:])
                    raise AssertionError(f"What was waited for did not happen; last:\n{told}")
                self._heard.wait(left)

    def pids(self) -> list[int]:
        """Processes of the slots that were claimed, oldest first."""
        with self._heard:
            return [event.pid for event in self.events if isinstance(event, SlotClaimed)]

    def replanned(self) -> bool:
        """Whether a micro-batch was given up, so that a kill has hit one with work left."""
        with self._heard:
            return any(isinstance(event, Replanned) for event in self.events)


@dataclass
class Scene:
    """Files in *folder*, to be sent to *topic* by a connector of the same name."""

    bootstrap: str
    folder: Path
    topic: str
    worker: dict[str, str] = field(default_factory=dict)
    connector: dict[str, str] = field(default_factory=dict)
    witness: Witness = field(default_factory=Witness)
    processes: Processes | None = None
    becomes: Callable[[Sequence[bytes]], list[bytes]] = list
    """What is to be in the topic of the lines that are written."""

    def __post_init__(self) -> None:
        self.files = self.folder / "in"
        self.files.mkdir(parents=True, exist_ok=True)

    def write(self, *, files: int = 2, records: int = 16_000) -> list[bytes]:
        """Write JSONL *files* with *records* each; every record is another one."""
        expected: list[bytes] = []
        for number in range(files):
            lines = [
                b'{"file":%d,"line":%d,"text":"%s"}' % (number, line, b"x" * (line % 90))
                for line in range(records)
            ]
            (self.files / f"part-{number}.jsonl").write_bytes(b"\n".join(lines) + b"\n")
            expected.extend(lines)
        return expected

    def worker_props(self) -> dict[str, str]:
        """The worker's configuration."""
        return {
            "bootstrap.servers": self.bootstrap,
            "key.converter": "string",
            "value.converter": "json",
            "value.converter.schemas.enable": "false",
            "group.id": f"g-{self.topic}",
            "offset.storage.partitions": "3",
            "state.file": str(self.folder / "state.db"),
            "headrace.slots": "2",
            "headrace.lease.ms": "5000",
            "listeners": "http://127.0.0.1:0",
            **self.worker,
        }

    def connector_props(self) -> dict[str, str]:
        """The connector's configuration."""
        return {
            "name": self.topic,
            "connector.class": "files",
            "files.path": str(self.files),
            "files.min.age.ms": "0",
            # With larger polls there would be few ends of polls, between which things happen.
            "files.batch.max.bytes": "1048576",
            "topic": self.topic,
            "tasks.max": "2",
            "transaction.boundary.interval.ms": str(COMMIT_MS),
            "headrace.max.records.per.second": str(RECORDS_PER_SECOND),
            **self.connector,
        }

    def run_once(self, engine: Engine) -> dict[str, Exception]:
        """Run the connector in this process until all is read; its failures."""
        with self.running(engine) as wait:
            return wait()

    @contextmanager
    def running(
        self, engine: Engine, *, once: bool = True
    ) -> Iterator[Callable[[], dict[str, Exception]]]:
        """Run the connector in this process; the result waits for its end."""
        config = checked_worker(self.worker_props())
        with running(
            config,
            [validated_connector(self.connector_props(), config)],
            state_file=self.folder / "state.db",
            emit=self.witness,
            once=once,
            data_plane=DataPlane.of(KeptEngine(engine), self.processes),
        ) as herder:
            herder.ready()
            try:
                yield herder.wait_for_end
            finally:
                herder.ask_to_stop()
                herder.wait_for_end()

    def write_configs(self) -> list[str]:
        """Both configurations as files, for the command line."""
        worker, connector = self.folder / "worker.json", self.folder / "connector.json"
        worker.write_text(json.dumps(self.worker_props()))
        connector.write_text(json.dumps(self.connector_props()))
        return [str(worker), str(connector)]

    def killed_slot_round(
        self,
        engine: Engine,
        chance: random.Random,
        *,
        victim: Callable[[int], int] | None = None,
    ) -> tuple[dict[str, Exception], Verdict]:
        """Kill one slot at a random moment; the failures, and what is in Kafka then.

        *victim* gives the process to kill for that of the slot; without it that one is killed.
        """
        expected = self.write()
        with self.running(engine) as wait:
            self.witness.wait_for(is_claim, seconds=120)
            pause(chance)
            chosen = chance.choice(self.witness.pids())
            os.kill(victim(chosen) if victim else chosen, signal.SIGKILL)
            failures = wait()
        return failures, self.verdict(self.becomes(expected))

    def verdict(self, expected: Sequence[bytes]) -> Verdict:
        """What another client library finds in the topic."""
        return judged(self.bootstrap, self.topic, expected)


def is_claim(event: Event) -> bool:
    """Whether a slot has begun."""
    return isinstance(event, SlotClaimed)


def pause(chance: random.Random, seconds: float = ROUND_SECONDS) -> None:
    """Let a random part of a round of so many *seconds* go by: the moment of a kill is the test's input."""
    threading.Event().wait(chance.uniform(0, seconds * 0.8))
