"""How long a plan takes over many files, and how much memory: the connector alone, without a broker.

Each case is measured in a process of its own, which has read the stored entries before: time and memory
are those of the plan.
"""

from __future__ import annotations

import ctypes
import gc
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

from benchmarks.contender import ROOT, BenchmarkError
from benchmarks.s3_server import BUCKET, PREFIX, made_up, s3_server, settings_of
from headrace.connect.connector import PlanRequest
from headrace.connect.partition import SourceOffset, SourcePartition
from headrace.connectors.files.connector import FilesConnector
from headrace.connectors.files.local.identity import version_of
from headrace.offsets.codec import encoded_key, encoded_value
from headrace.offsets.index import LogPosition, OffsetIndex
from headrace.offsets.store import OffsetSnapshot

_MOST_SECONDS = 600.0
_SLOTS = 2
_CONTENT = b'{"id":1}\n'
_NAME = "benchmark"
# As many as Kafka Connect gives its topic of offsets.
_PARTITIONS = 25
_MOMENT_MS = 1_770_000_000_000
_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanCase:
    """Files to plan over: *files* of them in a *store* or on local disk, of which all or none are *known*.

    Of those that are known the last *new* ones are not.
    """

    key: str
    title: str
    files: int
    store: bool
    known: bool
    new: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanMeasured:
    """What a plan over *files* took: its time, the peak of its memory, its splits and changes of offsets.

    *index_bytes* is the memory of the stored entries, which was taken before.
    """

    files: int
    index_bytes: int
    seconds: float
    cpu_seconds: float
    peak_bytes: int
    splits: int
    offsets: int


CASES: Final[Sequence[PlanCase]] = (
    PlanCase(
        key="plan-s3-known",
        title="S3, all entries stored, 1,000 objects new",
        files=1_000_000,
        store=True,
        known=True,
        new=1_000,
    ),
    PlanCase(
        key="plan-s3-new", title="S3, nothing stored", files=1_000_000, store=True, known=False
    ),
    PlanCase(
        key="plan-local-known",
        title="local disk, all entries stored",
        files=100_000,
        store=False,
        known=True,
    ),
    PlanCase(
        key="plan-local-new",
        title="local disk, nothing stored",
        files=100_000,
        store=False,
        known=False,
    ),
)


def measured(case: PlanCase, *, folder: Path, files: int | None = None) -> PlanMeasured:
    """Run *case* in a process of its own, with so many *files*; raises BenchmarkError when it fails."""
    command = [sys.executable, "-m", "benchmarks.plans", case.key, str(files or case.files)]
    ended = subprocess.run(
        [*command, str(folder)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=_MOST_SECONDS,
        check=False,
    )
    if ended.returncode:
        raise BenchmarkError(f"The plan failed:\n{ended.stderr}")
    return PlanMeasured(**json.loads(ended.stdout.splitlines()[-1]))


def plan_once(case: PlanCase, files: int, folder: Path) -> PlanMeasured:
    """Plan in this process. *folder* is where files are made."""
    place = _stored(files) if case.store else _on_disk(files, folder)
    with place as props:
        connector = FilesConnector()
        connector.start({"files.format": "jsonl", "topic": "t", "files.recursive": "true", **props})
        empty = settled_bytes()
        entries = _entries(case, files - case.new, props["files.path"]) if case.known else ()
        index = _index(entries)
        request = PlanRequest(slots=_SLOTS, offsets=OffsetSnapshot(index.known(_NAME)))
        before = settled_bytes()
        began, cpu = time.monotonic(), time.process_time()
        plan = connector.plan(request)
        found = PlanMeasured(
            files=files,
            index_bytes=before - empty,
            seconds=time.monotonic() - began,
            cpu_seconds=time.process_time() - cpu,
            peak_bytes=_peak_bytes() - before,
            splits=sum(map(len, plan.shares)),
            offsets=len(plan.offsets),
        )
        connector.stop()
    return found


@contextmanager
def _stored(files: int) -> Generator[Mapping[str, str]]:
    with s3_server(files) as url:
        yield {
            "files.path": f"s3://{BUCKET}/{PREFIX}",
            "files.compression": "none",
            **settings_of(url),
        }


@contextmanager
def _on_disk(files: int, folder: Path) -> Generator[Mapping[str, str]]:
    with tempfile.TemporaryDirectory(dir=folder) as name:
        for number in range(files):
            path = Path(name) / made_up(number).key
            if number % 10_000 == 0:
                path.parent.mkdir(parents=True)
            path.write_bytes(_CONTENT)
        # The plan is of files that are finished.
        yield {"files.path": name, "files.min.age.ms": "0"}


def _index(entries: Iterable[tuple[str, SourceOffset]]) -> OffsetIndex:
    """The driver's index of stored offsets, as it has read them from their topic."""
    index = OffsetIndex()
    for number, (path, entry) in enumerate(entries):
        key = encoded_key(_NAME, SourcePartition(filename=path))
        place = LogPosition(
            partition=number % _PARTITIONS, offset=number, timestamp=_MOMENT_MS + number
        )
        index.apply(key, encoded_value(entry), place)
    return index


def _entries(case: PlanCase, files: int, path: str) -> Iterator[tuple[str, SourceOffset]]:
    """What is stored after all of the first *files* were read."""
    if case.store:
        for each in map(made_up, range(files)):
            yield f"s3://{BUCKET}/{each.key}", _entry(each.size, each.etag)
        return
    for each in sorted(Path(path).rglob("*.jsonl")):
        yield str(each), _entry(len(_CONTENT), version_of(each.stat().st_ino, _CONTENT))


def _entry(size: int, version: str) -> SourceOffset:
    return {
        "recordCount": 10,
        "anchor": size,
        "skip": 0,
        "version": version,
        "size": size,
        "format": "jsonl",
        "done": True,
    }


def settled_bytes() -> int:
    """The memory that this process has when it has given back what it does not need; the peak begins again."""
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)
    Path("/proc/self/clear_refs").write_text("5")
    return int(Path("/proc/self/statm").read_text().split()[1]) * _PAGE_BYTES


def _peak_bytes() -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM"))


def main() -> None:
    """One case, named on the command line with its number of files and a folder."""
    key, files, folder = sys.argv[1:]
    case = next(each for each in CASES if each.key == key)
    print(json.dumps(asdict(plan_once(case, int(files), Path(folder)))))


if __name__ == "__main__":
    main()
