"""Slots that send with our own wire are killed under load at random moments, on both versions of transactions."""

from __future__ import annotations

import json
import os
import random
from collections import defaultdict
from pathlib import Path

import pytest

from doubles.process_engine import ProcessEngine
from end_to_end.scene import Scene
from headrace.testing.judge import committed_records

pytestmark = [pytest.mark.broker, pytest.mark.kill, pytest.mark.timeout(240), pytest.mark.slow]

# The judge has no library for the others.
CODECS = ("none", "gzip", "zstd")


def order_of(bootstrap: str, topic: str) -> dict[tuple[int, int], list[int]]:
    """The numbers of lines as they lie in each partition, file by file."""
    found = defaultdict[tuple[int, int], list[int]](list)
    for each in committed_records(bootstrap, topic):
        line = json.loads(each.value or b"")
        found[each.partition, line["file"]].append(line["line"])
    return found


@pytest.mark.sampled(1)
@pytest.mark.parametrize("round_", range(40))
def test_a_killed_slot_loses_nothing_doubles_nothing_and_keeps_the_order(
    request: pytest.FixtureRequest, tmp_path: Path, processes: ProcessEngine, round_: int
) -> None:
    """Whatever the wire had in flight: another client library finds each line once, those of a file in order."""
    bootstrap = request.getfixturevalue("first_bootstrap" if round_ % 2 else "bootstrap")
    settings = {
        "headrace.sender": "wire",
        "producer.override.compression.type": CODECS[round_ % len(CODECS)],
    }
    scene = Scene(bootstrap, tmp_path, f"wire-{round_}-{os.getpid()}", connector=settings)

    failures, verdict = scene.killed_slot_round(processes, random.Random(round_))

    assert {} == failures
    assert scene.witness.replanned(), "the kill hit no work"
    assert verdict.exactly_once, verdict
    for place, lines in order_of(bootstrap, scene.topic).items():
        assert sorted(lines) == lines, place
