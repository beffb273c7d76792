"""A chain of transformations on a real Spark whose processes are killed: each record once, and dropped ones never."""

from __future__ import annotations

import json
import os
import random
import signal
from collections.abc import Sequence
from pathlib import Path

import pytest

from end_to_end import line_sorter
from end_to_end.scene import Scene, Witness, is_claim, pause
from end_to_end.test_dead_letters import tolerant
from headrace.spark.engine import SparkEngine
from headrace.testing.judge import committed_records, judged

pytestmark = [pytest.mark.broker, pytest.mark.kill, pytest.mark.spark]

CHAIN = {
    "transforms": "sort,wrap,quiet",
    "transforms.sort.type": "LineSorter",
    "transforms.sort.debug.topic": "debug-lines",
    "transforms.wrap.type": "org.apache.kafka.connect.transforms.HoistField$Value",
    "transforms.wrap.field": "it",
    "transforms.quiet.type": "org.apache.kafka.connect.transforms.Filter",
    "transforms.quiet.predicate": "debug",
    "predicates": "debug",
    "predicates.debug.type": "org.apache.kafka.connect.transforms.predicates.TopicNameMatches",
    "predicates.debug.pattern": "debug-.*",
}
CSV = {
    "csv.types": "file:integer,line:integer",
    "csv.schemas.enable": "true",
}


def as_csv(folder: Path) -> None:
    """Make tables of the JSON lines in *folder*."""
    for file in folder.glob("*.jsonl"):
        rows = [json.loads(line).values() for line in file.read_text().splitlines()]
        text = "".join(f"{','.join(map(str, row))}\n" for row in rows)
        file.with_suffix(".csv").write_text(f"file,line,text\n{text}")
        file.unlink()


def sorted_lines(lines: Sequence[bytes]) -> tuple[list[bytes], list[bytes]]:
    """What becomes of *lines*: those that are sent, as they are behind the chain, and the bad ones."""
    numbers = [json.loads(line)["line"] for line in lines]
    bad = [line for line, number in zip(lines, numbers, strict=True) if line_sorter.is_bad(number)]
    sent = [
        b'{"it":%s}' % line
        for line, number in zip(lines, numbers, strict=True)
        if not (line_sorter.is_bad(number) or line_sorter.is_debug(number))
    ]
    return sent, bad


@pytest.mark.slow
@pytest.mark.sampled(1)
@pytest.mark.timeout(240)
@pytest.mark.parametrize(("form", "sender"), [("jsonl", "wire"), ("csv", "client")])
def test_a_killed_slot_behind_a_chain_loses_nothing_and_doubles_nothing(
    bootstrap: str, tmp_path: Path, spark_engine: SparkEngine, form: str, *, sender: str
) -> None:
    """Bad lines are dead letters, and offsets are behind those dropped last: a second run reads nothing."""
    topic = f"chain-{form}-{os.getpid()}"
    scene = Scene(bootstrap, tmp_path, topic, connector=CHAIN | tolerant(f"{topic}-dead"))
    scene.worker["plugin.modules"] = "end_to_end.line_sorter"
    scene.connector["headrace.sender"] = sender
    sent, bad = sorted_lines(scene.write())
    if form == "csv":
        as_csv(scene.files)
        scene.connector |= CSV

    chance = random.Random(form)
    with scene.running(spark_engine) as wait:
        scene.witness.wait_for(is_claim, seconds=120)
        pause(chance)
        os.kill(chance.choice(scene.witness.pids()), signal.SIGKILL)
        assert {} == wait()

    assert scene.witness.replanned()
    assert judged(bootstrap, topic, sent).exactly_once
    assert judged(bootstrap, f"{topic}-dead", bad).exactly_once
    assert stages(bootstrap, f"{topic}-dead") == {
        ("TRANSFORMATION", "end_to_end.line_sorter.LineSorter")
    }
    scene.witness = Witness()
    assert {} == scene.run_once(spark_engine)
    assert [] == scene.witness.pids()


def stages(bootstrap: str, topic: str) -> set[tuple[str, str]]:
    """In which stages, and by which classes, the records of *topic* were found to be bad."""
    letters = [
        {key.removeprefix("__connect.errors."): value.decode() for key, value in each.headers}
        for each in committed_records(bootstrap, topic)
    ]
    return {(each["stage"], each["class.name"]) for each in letters}
