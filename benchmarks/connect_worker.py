"""The contender Apache Kafka Connect: a distributed worker with its FileStreamSource connector."""

from __future__ import annotations

import json
import socket
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from benchmarks.contender import BenchmarkError, Job, end_all, started
from benchmarks.file_stream import STRING, FileStream
from headrace.broker.folder import LOG_CONFIG, as_text
from headrace.jvm.jars import class_path
from headrace.jvm.java import find_java

MAIN = "org.apache.kafka.connect.cli.ConnectDistributed"
START_SECONDS = 90.0
# What Kafka's own connect-distributed.sh and kafka-run-class.sh start Java with.
JAVA_OPTIONS = (
    "-Xms256M",
    "-Xmx2G",
    "-server",
    "-XX:+UseG1GC",
    "-XX:MaxGCPauseMillis=20",
    "-XX:InitiatingHeapOccupancyPercent=35",
    "-XX:+ExplicitGCInvokesConcurrent",
    "-XX:MaxInlineLevel=15",
    "-Djava.awt.headless=true",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectWorker:
    """One FileStreamSource, which is always one task."""

    exactly_once: bool
    connector: FileStream = field(default_factory=FileStream)
    slot_marker: Final[str | None] = "no process is a slot"

    def launch(self, job: Job) -> Sequence[subprocess.Popen[bytes]]:
        """Start the worker, without a connector."""
        properties = job.folder / "worker.properties"
        properties.write_text(as_text(self._worker(job)))
        return [started(java_command(job.folder, MAIN, properties), job)]

    def begin(self, job: Job, processes: Sequence[subprocess.Popen[bytes]]) -> None:
        """Create the connector as soon as the worker's REST interface takes it."""
        connector = {"name": "benchmark", "config": self.connector.config(job)}
        body = json.dumps(connector).encode()
        url = (job.folder / "address").read_text()
        deadline = time.monotonic() + START_SECONDS
        while not _created(url, body):
            if processes[0].poll() is not None or time.monotonic() > deadline:
                raise BenchmarkError("Kafka Connect did not take the connector.")
            time.sleep(0.1)

    def end(self, processes: Sequence[subprocess.Popen[bytes]]) -> None:
        """Ask it to end: it never does by itself."""
        end_all(processes)

    def _worker(self, job: Job) -> dict[str, str]:
        address = f"http://127.0.0.1:{free_port()}"
        (job.folder / "address").write_text(f"{address}/connectors")
        plugins = job.folder / "plugins"
        plugins.mkdir()
        storage = ("offset", "config", "status")
        return {
            "bootstrap.servers": job.bootstrap,
            "group.id": job.topic,
            "key.converter": STRING,
            "value.converter": STRING,
            "exactly.once.source.support": "enabled" if self.exactly_once else "disabled",
            "listeners": address,
            # The connector's jar is on the class path, with all the others.
            "plugin.path": str(plugins),
            "plugin.discovery": "service_load",
            **{f"{each}.storage.topic": f"{job.topic}-{each}" for each in storage},
            **{f"{each}.storage.replication.factor": "1" for each in storage},
        }


def java_command(folder: Path, main: str, properties: Path) -> list[str]:
    """The command that runs Kafka Connect's class *main*, which logs warnings only."""
    java = find_java()
    quiet = folder / "log4j2.properties"
    quiet.write_text(LOG_CONFIG.replace("rootLogger.level = info", "rootLogger.level = warn"))
    logging = f"-Dlog4j2.configurationFile={quiet.as_uri()}"
    jars = class_path("connect", java=java)
    return [str(java.executable), *JAVA_OPTIONS, logging, "-cp", jars, main, str(properties)]


def _created(url: str, body: bytes) -> bool:
    """Whether the worker took the connector; not while it starts, joins its group or rebalances."""
    headers = {"Content-Type": "application/json"}
    try:
        urllib.request.urlopen(urllib.request.Request(url, body, headers), timeout=30).close()
    except urllib.error.HTTPError as error:
        message = error.read().decode(errors="replace")
        if error.code < 500 and error.code not in (404, 409):
            raise BenchmarkError(f"Kafka Connect refused the connector: {message}") from error
        return error.code == 409 and "already exists" in message
    except OSError:
        return False
    return True


def free_port() -> int:
    """A port of loopback that no one listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]
