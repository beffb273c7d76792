"""What measuring a worker that serves needs: a broker, topics, files, and the broker's log as a clock."""

from __future__ import annotations

import itertools
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from benchmarks.broker_log import PartitionLog
from benchmarks.contender import BenchmarkError
from benchmarks.measuring import LOOK_SECONDS, TOPIC_SECONDS
from headrace.broker import Broker


@dataclass(frozen=True, slots=True, kw_only=True)
class Scale:
    """How much is measured: *rounds* of what is short, so many paused *connectors*, *seconds* of idling, *handovers* to other workers."""

    rounds: int
    connectors: int
    seconds: float
    handovers: int


WHOLE = Scale(rounds=7, connectors=500, seconds=60.0, handovers=30)
QUICK = Scale(rounds=3, connectors=50, seconds=15.0, handovers=3)


class ControlScene:
    """Makes topics, folders and files below *folder*, in which *broker* has its own. One thread owns it."""

    def __init__(self, broker: Broker, folder: Path, scale: Scale) -> None:
        self.scale = scale
        self.bootstrap = broker.bootstrap
        self._folder = folder
        self._admin = AdminClient({"bootstrap.servers": broker.bootstrap, "log_level": 0})
        self._numbers = itertools.count()

    def name(self) -> str:
        """A name that nothing has had before."""
        return f"control-{next(self._numbers)}"

    def folder(self) -> Path:
        """A new folder."""
        path = self._folder / self.name()
        path.mkdir()
        return path

    def topic(self) -> str:
        """A new topic with one partition, whose log is there."""
        topic = self.name()
        self._admin.create_topics([NewTopic(topic, 1, 1)])[topic].result(TOPIC_SECONDS)
        return topic

    def file(self, records: int) -> Path:
        """A file of as many lines, alone in its folder."""
        path = self.folder() / "records.jsonl"
        path.write_text("".join(f'{{"id":{number}}}\n' for number in range(records)))
        return path

    def log(self, topic: str) -> PartitionLog:
        """The topic's log; the broker makes its folder a moment after the topic."""
        deadline = time.monotonic() + TOPIC_SECONDS
        while time.monotonic() < deadline:
            for folder in self._folder.glob(f"broker/**/{topic}-0"):
                return PartitionLog(folder)
            time.sleep(LOOK_SECONDS)
        raise BenchmarkError(f"The broker does not make a log for the topic {topic}.")


def files_connector(path: Path, topic: str, **settings: str) -> Mapping[str, str]:
    """A connector that reads the file or folder at *path*."""
    return {
        "connector.class": "files",
        "files.path": str(path),
        "files.format": "lines",
        "files.min.age.ms": "0",
        "topic": topic,
        **{key.replace("_", "."): value for key, value in settings.items()},
    }
