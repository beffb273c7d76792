"""``benchmarks.thread_worker`` that measures the CPU time of its slots by stage, and writes it to a file when it ends.

A program: it takes the file, and then the arguments of ``headrace``.
"""

from __future__ import annotations

import functools
import importlib
import json
import sys
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa

REST: Final = "rest"
STAGES: Final[Mapping[str, Sequence[str]]] = {
    "read": ("headrace.formats.streams:PlainStream.read_into",),
    "prove": (
        "headrace.connectors.files.local.fingerprinting_stream:FingerprintingStream.read_into",
        "headrace.connectors.files.local.fingerprinting_stream:FingerprintingStream.columns",
    ),
    "split": (
        "headrace.formats.blocks:BlockReader.next_block",
        "headrace.formats.rows:RowBlock.column",
    ),
    "check": (
        "headrace.formats.lines:LinesExtractor.extract",
        "headrace.formats.jsonl:JsonLinesExtractor.extract",
    ),
    "convert": ("headrace.task.encoding:Encoder.encoded",),
    "encode": (
        "headrace.kafka.wire_sender:columns_of",
        "headrace.kafka.wire_sender:largest_sizes",
        "headrace.kafka.wire_sender:row_batches",
    ),
    "checksum": ("headrace.kafka.wire.delivery:stamped",),
    "send": (
        "headrace.kafka.wire_sender:WireSender.begin",
        "headrace.kafka.wire_sender:WireSender.send",
        "headrace.kafka.wire_sender:WireSender.commit",
    ),
    REST: ("headrace.task.writer:TaskWriter.write",),
}
"""The functions in which each stage is spent, called for whole blocks of records: less what is another stage's within."""
_GENERATORS: Final = ("headrace.kafka.wire_sender:row_batches",)


class StageClock:
    """The CPU seconds of each stage, on all threads that are inside of one; *clock* is a thread's own."""

    def __init__(self, clock: Callable[[], float] = time.thread_time) -> None:
        self._clock = clock
        self._inside = threading.local()
        self.seconds = dict.fromkeys(STAGES, 0.0)
        self.calls = dict.fromkeys(STAGES, 0)

    def timed(self, stage: str, function: Callable[..., Any]) -> Callable[..., Any]:
        """*function*, whose time is that of *stage*."""

        @functools.wraps(function)
        def measured(*args: Any, **named: Any) -> Any:  # noqa: ANN401
            open_stages = self._enter(stage)
            try:
                return function(*args, **named)
            finally:
                self._count(open_stages)
                open_stages.pop()

        return measured

    def _enter(self, stage: str) -> list[str]:
        open_stages: list[str] = self._inside.__dict__.setdefault("stages", [])
        self._count(open_stages)
        open_stages.append(stage)
        self.calls[stage] += 1
        return open_stages

    def _count(self, open_stages: Sequence[str]) -> None:
        """Since the last time that this was called on this thread, it was inside the last of *open_stages*."""
        now = self._clock()
        if open_stages:
            self.seconds[open_stages[-1]] += now - self._inside.since
        self._inside.since = now


def measure(clock: StageClock) -> None:
    """From now on, have *clock* measure the stages of this process."""
    for stage, names in STAGES.items():
        for name in names:
            owner, attribute, function = found(name)
            if name in _GENERATORS:
                function = _listed(function)
            setattr(owner, attribute, clock.timed(stage, function))


def found(name: str) -> tuple[object, str, Callable[..., Any]]:
    """Where the function *name* is kept, under which attribute, and what it is."""
    module, _, path = name.partition(":")
    owner: object = importlib.import_module(module)
    *outer, attribute = path.split(".")
    for each in outer:
        owner = getattr(owner, each)
    return owner, attribute, getattr(owner, attribute)


def _listed(function: Callable[..., Iterable[Any]]) -> Callable[..., Iterable[Any]]:
    """*function*, which makes nothing later than it returns."""

    @functools.wraps(function)
    def listed(*args: Any, **named: Any) -> list[Any]:  # noqa: ANN401
        return list(function(*args, **named))

    return listed


def main() -> int:
    """Run the command line."""
    from benchmarks import thread_worker  # noqa: PLC0415 (it prepares the process that imports it)

    # Its first array imports pandas, which is no stage of anything.
    pa.array(np.zeros(1))
    written, clock = Path(sys.argv.pop(1)), StageClock()
    measure(clock)
    code = thread_worker.main()
    written.write_text(json.dumps({"seconds": clock.seconds, "calls": clock.calls}))
    return code


if __name__ == "__main__":
    sys.exit(main())
