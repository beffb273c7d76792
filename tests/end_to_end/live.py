"""A worker in the test's own process, with as many connectors as a test likes."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from doubles.puppets import Puppet, puppet
from doubles.thread_engine import ThreadEngine
from end_to_end.scene import KeptEngine, OutOfReach, Witness
from headrace.observe.events import ConnectorFailed, Waiting
from headrace.plugins import checked_worker, validated_connector
from headrace.runtime.engine import Engine, Processes
from headrace.testing.judge import committed_records
from headrace.worker import DataPlane, running

_numbers = itertools.count()


@dataclass
class Life:
    """Names and settings of a worker that may be run several times, with everything that was told."""

    bootstrap: str
    folder: Path
    worker: dict[str, str] = field(default_factory=dict)
    engine: Engine = field(default_factory=ThreadEngine)
    processes: Processes = field(default_factory=OutOfReach)
    name: str = field(default_factory=lambda: f"life-{os.getpid()}-{next(_numbers)}")
    witness: Witness = field(default_factory=Witness)
    connectors: list[dict[str, str]] = field(default_factory=list)

    def add(self, kind: str, behaviour: Puppet | None = None, **settings: str) -> str:
        """Add a connector of class *kind*; its name, which is also its topic's."""
        name = self.next_name()
        if behaviour is not None:
            puppet(name, behaviour)
        given = {key.replace("_", "."): value for key, value in settings.items()}
        self.connectors.append(
            {"name": name, "connector.class": kind, "topic": name, "tasks.max": "2", **given}
        )
        return name

    def next_name(self) -> str:
        """The name that the next connector will have."""
        return f"{self.name}-{len(self.connectors)}"

    def worker_props(self) -> dict[str, str]:
        """The worker's configuration."""
        return {
            "bootstrap.servers": self.bootstrap,
            "key.converter": "string",
            "value.converter": "string",
            "group.id": f"g-{self.name}",
            "offset.storage.partitions": "2",
            "headrace.lease.ms": "5000",
            "headrace.idle.poll.ms": "50",
            "poll.linger.ms": "200",
            "plugin.modules": "doubles.puppets",
            **self.worker,
        }

    @contextmanager
    def running(self, *, once: bool = False) -> Iterator[Callable[[], Mapping[str, Exception]]]:
        """Run the connectors until the end of the block; the result waits for their own end."""
        config = checked_worker(self.worker_props())
        with running(
            config,
            [validated_connector(each, config) for each in self.connectors],
            state_file=self.folder / "state.db",
            emit=self.witness,
            once=once,
            data_plane=DataPlane.of(KeptEngine(self.engine), self.processes),
        ) as herder:
            herder.ready()
            try:
                yield herder.wait_for_end
            finally:
                herder.ask_to_stop()
                herder.wait_for_end()

    def run_once(self) -> Mapping[str, Exception]:
        """Run until all there is has been read; the failures."""
        with self.running(once=True) as wait:
            return wait()

    def values(self, topic: str) -> list[str]:
        """The committed values of *topic*, as another client library reads them."""
        return [(each.value or b"").decode() for each in committed_records(self.bootstrap, topic)]

    def heard(self, kind: type, *, of: str | None = None) -> list[object]:
        """The events of that *kind* so far."""
        return [
            each
            for each in list(self.witness.events)
            if isinstance(each, kind) and (of is None or each.connector == of)
        ]

    def waits(self) -> list[str]:
        """Why connectors had to wait."""
        return [each.reason for each in self.witness.events if isinstance(each, Waiting)]

    def failures(self) -> list[str]:
        """Why connectors failed."""
        return [each.reason for each in self.witness.events if isinstance(each, ConnectorFailed)]


def numbers(count: int, *, start: int = 0) -> list[str]:
    """What :func:`doubles.puppets.numbered` sends."""
    return [str(number) for number in range(start, count)]
