"""The plans of a connector of checkpoints, on two clusters in memory, while it begins."""

from __future__ import annotations

from typing import Any, cast

import pyarrow as pa
import pytest

from discovery.cluster_double import Log
from headrace.connect.errors import RetriableError, TaskFailedError
from headrace.kafka.deadline import Deadline
from headrace.mirror.checkpoint_planner import CheckpointPlanner
from headrace.mirror.settings import MirrorCheckpointConfig
from headrace.mirror.topic_tail import TopicTail
from mirror.two_clusters import PROPS, FlowCluster

TOPIC = "A.checkpoints.internal"


def test_a_topic_of_checkpoints_that_brokers_do_not_know_yet_is_not_an_empty_one():
    """Offsets would be translated as if nothing had been written; it is made sure of again that it is there."""
    source, target, ensured = FlowCluster(), FlowCluster(), list[int]()
    planner = CheckpointPlanner(
        MirrorCheckpointConfig.parse(PROPS),
        cast("Any", source),
        cast("Any", target),
        lambda: ensured.append(len(target.topics)),
    )

    for _ in range(2):
        with pytest.raises(RetriableError, match=rf"{TOPIC} .* the brokers do not know it yet"):
            planner.plan()
    assert [0, 0] == ensured
    target.create(TOPIC, Log())
    source.metadata_failures = [RetriableError("the source is away")]
    with pytest.raises(RetriableError, match="the source is away"):
        planner.plan()


def test_records_that_are_none_of_a_mirror_are_told_once_for_their_topic(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
):
    """However many, and however they differ."""
    bad = pa.RecordBatch.from_pydict({"key": [b"a", b"bc"], "value": [b"x", b"yz"]})
    monkeypatch.setattr(TopicTail, "read", lambda *_: iter([bad, bad]))
    planner = CheckpointPlanner(
        MirrorCheckpointConfig.parse(PROPS),
        cast("Any", FlowCluster()),
        cast("Any", FlowCluster()),
        lambda: None,
    )
    planner.plan()

    assert 1 == caplog.text.count(f"The topic {TOPIC} has a record that is none of a mirror")


def test_that_offsets_of_a_group_are_not_moved_is_logged_once_and_again_when_it_happens_again(
    caplog: pytest.LogCaptureFixture,
):
    """Not at each interval while the reason stays."""
    answers: list[Exception | None] = [TaskFailedError("it has members")] * 2
    answers += [None, TaskFailedError("it has members")]

    class Target(FlowCluster):
        def commit_entries(self, *_: object) -> None:
            answer = answers.pop(0)
            if answer is not None:
                raise answer

    planner = CheckpointPlanner(
        MirrorCheckpointConfig.parse(PROPS),
        cast("Any", FlowCluster()),
        cast("Any", Target()),
        lambda: None,
    )
    logged = list[int]()
    while answers:
        planner._commit_entries("readers", (), Deadline.after(1))
        logged.append(caplog.text.count("'readers' were not moved on the target: it has members"))

    assert [1, 1, 1, 2] == logged
