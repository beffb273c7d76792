"""A slot's memory is bounded by its configuration, however large a file is."""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import zstandard

MIB = 1024 * 1024
SMALL, LARGE = 5 * MIB, 100 * MIB
# Allocators keep some of what they had; a file that is held in memory, packed or not, is far above it.
GROWTH = 48 * MIB

# A process of its own, so that the peak is the slot's alone. Not getrusage: what that reports for a program
# begins with the peak of the one that started it.
PROGRAM = """
import json, re, sys
from pathlib import Path

from headrace.connect.connector import PlanRequest
from headrace.connectors.files.connector import FilesConnector
from headrace.connectors.files.task import FilesTask
from headrace.testing.task_runs import LocalContext, StoredOffsets

sys.path.insert(0, sys.argv[1])
from doubles.memory_sender import MemorySender
from task.loop import Loop

class Forgetful(MemorySender):
    rows = 0

    def send(self, records):
        Forgetful.rows += len(records)

def peak():
    kib = re.search(r"VmHWM:\\s*(\\d+) kB", Path("/proc/self/status").read_text())
    return int(kib[1]) * 1024

def read(path):
    props = {"files.path": path, "topic": "t", "files.min.age.ms": "0"}
    offsets = StoredOffsets({})
    connector = FilesConnector()
    connector.start(props)
    (share,) = connector.plan(PlanRequest(slots=1, offsets=offsets)).shares
    task = FilesTask()
    task.initialize(LocalContext(offsets=offsets, splits=share))
    task.start(props)
    loop = Loop(task)
    loop.sender = Forgetful()
    loop.run()
    task.stop()
    return Forgetful.rows, peak()

print(json.dumps([read(path) for path in sys.argv[2:]]))
"""

OPENERS: dict[str, Callable[..., Any]] = {"": open, ".gz": gzip.open, ".zst": zstandard.open}


def written(path: Path, size: int) -> int:
    """Write about *size* bytes of JSONL, packed as the name says; the number of lines."""
    block = b"".join(b'{"line":%d,"text":"%s"}\n' % (n, b"x" * 900) for n in range(1000))
    blocks = size // len(block)
    with OPENERS[path.suffix.removesuffix(".jsonl")](path, "wb") as out:
        for _ in range(blocks):
            out.write(block)
    return blocks * 1000


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="needs /proc")
@pytest.mark.parametrize("packing", OPENERS)
def test_a_large_file_takes_no_more_memory_than_a_small_one(tmp_path: Path, packing: str) -> None:
    """Twenty times the size, read after the small one by the same process, hardly moves its peak."""
    paths = [tmp_path / f"{name}.jsonl{packing}" for name in ("small", "large")]
    few, many = written(paths[0], SMALL), written(paths[1], LARGE)
    tests = Path(__file__).parents[1]
    command = [sys.executable, "-c", PROGRAM, str(tests), *map(str, paths)]
    ran = subprocess.run(command, capture_output=True, text=True, check=False, timeout=100)
    assert 0 == ran.returncode, ran.stderr

    (read_few, low), (read_all, high) = json.loads(ran.stdout)
    assert (few, few + many) == (read_few, read_all)
    assert high - low < GROWTH, f"{low / MIB:.0f} MiB for the small file, {high / MIB:.0f} in all"
