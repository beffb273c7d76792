"""The two programs that copy topics: headrace's mirror and Apache Kafka's MirrorMaker 2, with the same file of flows."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Protocol

from benchmarks.connect_worker import free_port, java_command
from benchmarks.contender import ROOT
from benchmarks.process_tree import read_tree
from headrace.broker.folder import as_text

MAIN: Final = "org.apache.kafka.connect.mirror.MirrorMaker"
TARGET: Final = "target"
TUNED: Final[Mapping[str, str]] = {
    "max.poll.records": "5000",
    "fetch.max.bytes": "52428800",
    "max.partition.fetch.bytes": "8388608",
    "receive.buffer.bytes": "1048576",
}
"""What MirrorMaker's consumer has beside its defaults."""
TUNED_PRODUCER: Final[Mapping[str, str]] = {
    "batch.size": "1000000",
    "linger.ms": "100",
    "buffer.memory": "67108864",
    "max.request.size": "8388608",
    "send.buffer.bytes": "1048576",
}
"""What its producer has. It compresses as the records that it copies were, so that both copies are of one size."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MirrorFlow:
    """One flow that copies *topic*. *alias* names the source cluster, and is a new one in each run.

    *compression* is that of its records. *exactly_once* is the promise; without it positions are committed behind the records.
    """

    alias: str
    source: str
    target: str
    topic: str
    tasks: int
    compression: str = "none"
    exactly_once: bool = True

    @property
    def remote_topic(self) -> str:
        """The copy."""
        return f"{self.alias}.{self.topic}"

    @property
    def properties(self) -> dict[str, str]:
        """The file, without heartbeats and the synchronisation of settings."""
        pair = f"{self.alias}->{TARGET}"
        one_broker = (
            "replication.factor",
            "checkpoints.topic.replication.factor",
            "heartbeats.topic.replication.factor",
            "offset-syncs.topic.replication.factor",
            "config.storage.replication.factor",
            "offset.storage.replication.factor",
            "status.storage.replication.factor",
        )
        return {
            "clusters": f"{self.alias}, {TARGET}",
            f"{self.alias}.bootstrap.servers": self.source,
            f"{TARGET}.bootstrap.servers": self.target,
            f"{pair}.enabled": "true",
            f"{pair}.topics": self.topic,
            "tasks.max": str(self.tasks),
            "emit.heartbeats.enabled": "false",
            "sync.topic.configs.enabled": "false",
            "sync.topic.acls.enabled": "false",
            **dict.fromkeys(one_broker, "1"),
        }


class Mirror(Protocol):
    """A program that copies a flow until it is ended."""

    @property
    def title(self) -> str:
        """What it is called in the report."""
        ...

    @property
    def slot_marker(self) -> str | None:
        """What the command lines of a slot's process and of its parent contain; see the meter."""
        ...

    def launch(self, flow: MirrorFlow, folder: Path) -> subprocess.Popen[bytes]:
        """Start it, in a session of its own; *folder* has what it writes, and is there for another one to go on."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class HeadraceMirror:
    """``headrace mirror FILE``, settings as they come."""

    title: Final[str] = "headrace"
    slot_marker: Final[str] = "pyspark.worker"

    def launch(self, flow: MirrorFlow, folder: Path) -> subprocess.Popen[bytes]:
        """See :class:`Mirror`."""
        file = folder / "mirror.properties"
        how = {
            "mirror.offset.ranges.topic.replication.factor": "1",
            f"{flow.alias}->{TARGET}.transaction.producer.enabled": str(flow.exactly_once).lower(),
        }
        if not flow.exactly_once:
            how[f"{TARGET}.exactly.once.source.support"] = "disabled"
        file.write_text(as_text(flow.properties | how))
        command = [sys.executable, "-m", "headrace", "mirror", str(file)]
        return _started([*command, "--state", str(folder)], folder)


@dataclass(frozen=True, slots=True, kw_only=True)
class JavaMirrorMaker:
    """MirrorMaker 2 in dedicated mode with exactly-once, tuned, with the Java options of its own script."""

    title: Final[str] = "MirrorMaker 2"
    slot_marker: Final[str] = "no process is a slot"

    def launch(self, flow: MirrorFlow, folder: Path) -> subprocess.Popen[bytes]:
        """See :class:`Mirror`."""
        file = folder / "mm2.properties"
        file.write_text(as_text(self.properties(flow)))
        return _started(java_command(folder, MAIN, file), folder)

    def properties(self, flow: MirrorFlow) -> dict[str, str]:
        """The file of *flow*, tuned."""
        pair = f"{flow.alias}->{TARGET}"
        return {
            **flow.properties,
            f"{TARGET}.exactly.once.source.support": "enabled",
            "dedicated.mode.enable.internal.rest": "true",
            "listeners": f"http://127.0.0.1:{free_port()}",
            # By default it commits after each poll, which costs it half of its speed.
            f"{pair}.transaction.boundary": "interval",
            f"{pair}.transaction.boundary.interval.ms": "1000",
            **{f"{flow.alias}.consumer.{key}": value for key, value in TUNED.items()},
            **{f"{TARGET}.producer.{key}": value for key, value in TUNED_PRODUCER.items()},
            f"{TARGET}.producer.compression.type": flow.compression,
        }


def kill_all(process: subprocess.Popen[bytes]) -> None:
    """SIGKILL for *process* and all below it."""
    for pid in read_tree([process.pid]):
        os.kill(pid, signal.SIGKILL)
    process.wait()


def output_of(folder: Path) -> Path:
    """Where a program that was launched in *folder* says what it does."""
    return folder / "output.log"


def _started(command: list[str], folder: Path) -> subprocess.Popen[bytes]:
    with output_of(folder).open("ab") as output:
        return subprocess.Popen(
            command,
            cwd=ROOT,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
