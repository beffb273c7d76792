"""The contender headrace: ``headrace run WORKER CONNECTOR --once``, settings as they come."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal

from benchmarks.binary_samples import PIECE_BYTES
from benchmarks.contender import Job, started, wait_for_success
from benchmarks.file_stream import JSON, STRING, FileStream
from benchmarks.s3_server import BUCKET, settings_of

Format = Literal["lines", "jsonl", "csv", "parquet", "avro", "bytes"]
RANGES_PER_SLOT = 4
_HEADRACE: Final = ("-m", "headrace")
_JSON = {"value.converter": JSON, "value.converter.schemas.enable": "false"}
_CONVERTERS: Mapping[Format, Mapping[str, str]] = {
    "lines": {"value.converter": STRING},
    "jsonl": _JSON,
    "csv": _JSON,
    "parquet": _JSON,
    "avro": {"value.converter": "io.confluent.connect.avro.AvroConverter"},
    "bytes": {"value.converter": "org.apache.kafka.connect.converters.ByteArrayConverter"},
}


@dataclass(frozen=True, slots=True, kw_only=True)
class HeadraceWorker:
    """One connector of class ``files`` in a worker with *slots* slots; several slots split the file.

    It reads from local disk, or the same file *from_store*; *settings* are added to the connector's. *command* are Python's
    arguments that stand for ``headrace``.
    """

    format: Format
    exactly_once: bool
    slots: int = 1
    from_store: bool = False
    settings: Mapping[str, str] = field(default_factory=dict[str, str])
    command: Sequence[str] = _HEADRACE
    slot_marker: Final[str] = "pyspark.worker"

    def launch(self, job: Job) -> Sequence[subprocess.Popen[bytes]]:
        """Start the worker, which reads the file and ends."""
        return [_started(job, self._worker(job), self._connector(job), self.command)]

    def begin(self, job: Job, processes: Sequence[subprocess.Popen[bytes]]) -> None:
        """Do nothing: the command does all of it."""

    def end(self, processes: Sequence[subprocess.Popen[bytes]]) -> None:
        """It ends by itself."""
        wait_for_success(processes)

    def _worker(self, job: Job) -> dict[str, str]:
        return {
            **_worker(job, slots=self.slots),
            **_CONVERTERS[self.format],
            **(
                {"value.converter.schema.registry.url": job.registry}
                if self.format == "avro"
                else {}
            ),
            "exactly.once.source.support": "enabled" if self.exactly_once else "disabled",
        }

    def _connector(self, job: Job) -> dict[str, str]:
        range_bytes = job.sample.path.stat().st_size // (self.slots * RANGES_PER_SLOT) + 1
        path = job.sample.path
        more = {"files.split.bytes": str(range_bytes)} if self.slots > 1 else {}
        more |= {"files.bytes.per.record": str(PIECE_BYTES)} if self.format == "bytes" else {}
        more |= settings_of(job.store) if self.from_store else {}
        return {
            "name": "benchmark",
            "connector.class": "files",
            "tasks.max": str(self.slots),
            "files.path": f"s3://{BUCKET}/{path.name}" if self.from_store else str(path),
            "files.format": self.format,
            "topic": job.topic,
            **more,
            **self.settings,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class HeadraceFileStream:
    """Kafka Connect's own connector in a worker with one slot, exactly once."""

    connector: FileStream
    slots: int = 1
    slot_marker: Final[str] = "pyspark.worker"

    def launch(self, job: Job) -> Sequence[subprocess.Popen[bytes]]:
        """Start the worker, which reads the file and ends."""
        worker = {**_worker(job, slots=self.slots), "value.converter": STRING}
        return [_started(job, worker, {"name": "benchmark", **self.connector.config(job)})]

    def begin(self, job: Job, processes: Sequence[subprocess.Popen[bytes]]) -> None:
        """Do nothing: the command does all of it."""

    def end(self, processes: Sequence[subprocess.Popen[bytes]]) -> None:
        """It ends by itself."""
        wait_for_success(processes)


def _worker(job: Job, *, slots: int) -> dict[str, str]:
    return {
        "bootstrap.servers": job.bootstrap,
        "group.id": job.topic,
        "key.converter": STRING,
        "exactly.once.source.support": "enabled",
        "headrace.slots": str(slots),
        "state.file": str(job.folder / "state.db"),
    }


def _started(
    job: Job,
    worker: Mapping[str, str],
    connector: Mapping[str, str],
    headrace: Sequence[str] = _HEADRACE,
) -> subprocess.Popen[bytes]:
    files = job.folder / "worker.json", job.folder / "connector.json"
    for path, config in zip(files, (worker, connector), strict=True):
        path.write_text(json.dumps(config))
    command = [sys.executable, *headrace, "run", *map(str, files), "--once"]
    return started(command, job)
