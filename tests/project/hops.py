"""How many files of headrace one record, one request and one configuration pass through: observations, not rules.

As a program it prints three figures: ``PYTHONPATH=tests python -m project.hops``, and with ``--files`` the files.
"""

from __future__ import annotations

import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from types import FrameType
from typing import Any

import httpx

import headrace
from doubles.memory_sender import MemorySender
from headrace.connect.connector import PlanRequest
from headrace.connect.partition import SourcePartition
from headrace.connectors.files.connector import FilesConnector
from headrace.herder.answers import TargetState
from headrace.rest.config import RestConfig
from headrace.rest.server import RestServer
from headrace.runtime.assignment import task_path
from headrace.task.slot_report import Progress
from headrace.task.worker_task import WorkerTask
from headrace.testing.task_runs import StoredOffsets
from herder.stage import Stage
from herder.stage import request as creation
from offsets.changing import memory_stage
from plugins.judged import CONNECTOR, run_spec, validator
from task.test_worker_task import WORK, Driver, HeldLease

_SOURCE = Path(headrace.__file__).parent


class Hops:
    """The files of headrace that are entered between :meth:`begin` and :meth:`end`, in all threads begun meanwhile."""

    def __init__(self, begins_with: str | None = None) -> None:
        self.files = set[str]()
        self._begins_with = begins_with
        self._counts = begins_with is None

    def seen(self, frame: FrameType, event: str, _: object) -> None:
        """Called by the interpreter at each call and return."""
        if event != "call" or not frame.f_code.co_filename.startswith(str(_SOURCE)):
            return
        self._counts = self._counts or frame.f_code.co_name == self._begins_with
        if self._counts:
            self.files.add(str(Path(frame.f_code.co_filename).relative_to(_SOURCE)))

    def begin(self) -> None:
        """Count from now on."""
        self._counts = True

    def end(self) -> None:
        """Count no more."""
        self._counts, self._begins_with = False, None


@contextmanager
def counting(hops: Hops) -> Iterator[Hops]:
    """Have the interpreter tell *hops* of each call."""
    threading.setprofile(hops.seen)
    sys.setprofile(hops.seen)
    try:
        yield hops
    finally:
        sys.setprofile(None)
        threading.setprofile(None)


def of_a_slot() -> set[str]:
    """From the first poll of ten JSON lines to their commit."""
    with tempfile.TemporaryDirectory() as folder:
        lines = Path(folder) / "lines.jsonl"
        lines.write_text("".join(f'{{"n":{number}}}\n' for number in range(10)))
        props = {"name": "c", "topic": "t", "files.path": folder, "files.format": "jsonl"}
        connector = FilesConnector()
        connector.start(props)
        plan = connector.plan(PlanRequest(slots=1, offsets=StoredOffsets({})))
        [share, *_] = [each for each in plan.shares if each]
        work = replace(WORK, task_class=task_path(connector), config=props, splits=tuple(share))
        hops = Hops(begins_with="poll")
        sender = _Sender(hops.end)
        driver: Any = Driver(lambda: True)
        lease: Any = HeldLease()
        run = WorkerTask(work, driver, lease, Progress(), make_sender=lambda *_, **__: sender)
        with counting(hops):
            run.run()
        run.close()
        assert 10 == len(sender.committed)
        return hops.files


class _Sender(MemorySender):
    """Says when the first transaction is committed."""

    def __init__(self, committed: Callable[[], None]) -> None:
        super().__init__()
        self._has_committed = committed

    def commit(self) -> None:
        """As the other."""
        super().commit()
        self._has_committed()


def of_a_request() -> set[str]:
    """PATCH of a connector's offsets, from the socket to the store; plugins and Kafka are in memory."""
    stage, offsets, hops = Stage(), memory_stage(), Hops(begins_with="")
    offsets.put({SourcePartition(filename="a"): {"position": 1}})
    changes: Any = offsets.changes()
    stage.changes = changes
    with counting(hops), stage.herder() as herder:
        herder.create(replace(creation(), initial_state=TargetState.STOPPED))
        server = RestServer(herder, RestConfig.parse({"listeners": "http://127.0.0.1:0"}))
        server.start()
        change = {"partition": {"filename": "a"}, "offset": {"position": 2}}
        with httpx.Client(base_url=server.url) as client:
            hops.begin()
            answer = client.patch("/connectors/c/offsets", json={"offsets": [change]})
            hops.end()
        server.close()
    assert 200 == answer.status_code, answer.text
    return hops.files


def of_a_configuration() -> set[str]:
    """From a connector's configuration to its spec."""
    judge, hops = validator(), Hops()
    with counting(hops):
        run_spec(judge, CONNECTOR)
    return hops.files


def main() -> None:
    """Print them."""
    ways = {
        "a slot, from poll to commit": of_a_slot,
        "PATCH of offsets": of_a_request,
        "a configuration, to its spec": of_a_configuration,
    }
    for title, way in ways.items():
        files = sorted(way())
        print(f"{title}: {len(files)} files")  # noqa: T201 (a program for people)
        if "--files" in sys.argv:
            print(*(f"  {each}" for each in files), sep="\n")  # noqa: T201 (as above)


if __name__ == "__main__":
    main()
