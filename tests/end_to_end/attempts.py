"""Slots that Spark itself attempts twice, on a session that allows it: a program for a player."""

from __future__ import annotations

import os
import signal
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any
from unittest import mock

from pyspark.sql import SparkSession

from end_to_end.player import FOLDER
from end_to_end.raising_task import WANTED
from end_to_end.scene import SENDERS, Scene
from headrace.observe.events import Event, SlotProgress
from headrace.runtime.micro_batch import MicroBatch
from headrace.spark.engine import SparkEngine
from headrace.spark.session import SparkSettings
from headrace.task.slot_work import SlotWork

# Each slot is at work for seconds, at the rate of a scene.
RECORDS = 32_000


class Claims:
    """Every claim's answer by its token, in the order of the claims."""

    def __init__(self) -> None:
        self.granted: dict[str, list[bool]] = defaultdict(list)
        self._claim = MicroBatch.claim

    def claim(
        self, batch: MicroBatch, token: str, *, pid: int, host: str, identity: str | None = None
    ) -> SlotWork | None:
        """Answer as the driver does, and note it."""
        work = self._claim(batch, token, pid=pid, host=host, identity=identity)
        self.granted[token].append(work is not None)
        return work

    def claimed_again(self) -> list[list[bool]]:
        """The answers to tokens that were claimed more than once."""
        return [each for each in self.granted.values() if len(each) > 1]


def failed_attempts(session: SparkSession) -> int:
    """How many of its tasks' attempts Spark has counted as failed in stages that came to a good end."""
    tracker = session.sparkContext.statusTracker()
    failed = 0
    for job in tracker.getJobIdsForGroup(None):
        told = tracker.getJobInfo(job)
        if told is None or told.status != "SUCCEEDED":
            continue
        stages = (tracker.getStageInfo(each) for each in told.stageIds)
        failed += sum(each.numFailedTasks for each in stages if each is not None)
    return failed


def has_committed(event: Event) -> bool:
    """Whether slots have records in Kafka for good, so that a second reading would double them."""
    return isinstance(event, SlotProgress) and event.committed_records > 0


def kill(scene: Scene) -> None:
    """SIGKILL to the process of one slot."""
    os.kill(scene.witness.pids()[0], signal.SIGKILL)


def let_raise(_: Scene) -> None:
    """Let the function of the next slot that commits raise."""
    (Path(os.environ[FOLDER]) / WANTED).touch()


def wrong_with(scene: Scene, session: SparkSession, end_one: Callable[[Scene], None]) -> str:
    """End the first attempt of one slot in the middle of its work; what was wrong then, for a person."""
    claims, failed_before = Claims(), failed_attempts(session)
    engine = SparkEngine(SparkSettings(), slots=2, session=session)
    expected = scene.write(records=RECORDS)
    with (
        mock.patch.object(MicroBatch, "claim", autospec=True, side_effect=claims.claim),
        scene.running(engine) as wait,
    ):
        scene.witness.wait_for(has_committed)
        end_one(scene)
        failures = wait()
    verdict = scene.verdict(expected)
    if (count := failed_attempts(session) - failed_before) != 1:
        return f"Spark has seen {count} failed attempts in jobs that succeeded"
    if claims.claimed_again() != [[True, False]]:
        return f"claims of tokens that came again: {claims.claimed_again()}"
    return "" if not failures and verdict.exactly_once else f"{failures} {verdict}"


def play(session: SparkSession, asked: Mapping[str, Any]) -> Iterator[Mapping[str, object]]:
    """Let attempts end in each way; tell how it went."""
    folder = Path(asked["folder"])
    ends = {"killed": kill, "raised": let_raise}
    for (name, end_one), sender in zip(ends.items(), SENDERS, strict=True):
        scene = Scene(
            asked["bootstrap"],
            folder / name,
            f"{asked['name']}-{name}-{os.getpid()}",
            worker={"plugin.modules": "end_to_end.raising_task"},
            connector={
                "connector.class": "end_to_end.raising_task:RaisingConnector",
                "headrace.sender": sender,
            },
        )
        yield {"attempt": name, "wrong": wrong_with(scene, session, end_one)}
