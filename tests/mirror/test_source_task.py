"""The task of a mirror: what it says of partitions that it cannot read on."""

from __future__ import annotations

import pytest

from headrace.connect.errors import PartitionError, ReplanError, TaskFailedError
from headrace.connect.task import Split
from headrace.kafka.batches.errors import CorruptBatchError
from headrace.kafka.topic_partition import TopicPartition
from headrace.kafka.wire.fetcher import Fetcher, UnfetchableError
from headrace.mirror.positions import Flow, Position
from headrace.mirror.source_task import EPOCH, REMOTE, MirrorSourceTask
from headrace.runtime.rounds import IdleContext
from headrace.testing.task_runs import StoredOffsets

PLACE = TopicPartition("t", 0)
SOURCE = Flow("A", "B").partition(PLACE)
PROPS = {
    "name": "m",
    "source.cluster.alias": "A",
    "target.cluster.alias": "B",
    "source.cluster.bootstrap.servers": "127.0.0.1:9",
}


def started(*, takes_encoded: bool = True, **settings: str) -> MirrorSourceTask:
    """A task with ``t-0`` for its share."""
    task = MirrorSourceTask()
    split = Split(partition=SOURCE, offset=Position(5).offset, details={REMOTE: "A.t", EPOCH: -1})
    task.initialize(
        IdleContext(
            connector="m",
            offsets=StoredOffsets({}),
            task=0,
            splits=(split,),
            takes_encoded=takes_encoded,
        )
    )
    task.start({**PROPS, **settings})
    return task


@pytest.mark.parametrize("takes_encoded", [True, False])
@pytest.mark.parametrize(
    "error",
    [
        CorruptBatchError(PLACE, 5, "its length is -1"),
        UnfetchableError(PLACE, 5, "Kafka refused the fetch of t-0 at offset 5."),
    ],
    ids=["a wrong length", "refused"],
)
def test_what_cannot_be_fetched_stops_its_partition_alone(
    monkeypatch: pytest.MonkeyPatch, error: Exception, *, takes_encoded: bool
):
    """Also where errors are tolerated: nobody knows what comes next."""

    def poll(*_: object) -> list[object]:
        raise error

    monkeypatch.setattr(Fetcher, "poll", poll)
    task = started(takes_encoded=takes_encoded, **{"errors.tolerance": "all"})

    with pytest.raises(PartitionError) as raised:
        task.poll()

    assert (SOURCE, str(error)) == (raised.value.partition, str(raised.value))
    task.stop()


def test_no_remote_topic_of_the_flow_is_created_for_records():
    """Its own one is the plan's matter; one that a transformation has named stops the partition. Other names are free."""
    task = started(topics="t, u")

    with pytest.raises(ReplanError, match=r"A\.t is gone"):
        task.check_new_topic("A.t", SOURCE)
    with pytest.raises(PartitionError, match=r"A\.u, as which") as raised:
        task.check_new_topic("A.u", SOURCE)
    assert SOURCE == raised.value.partition
    with pytest.raises(TaskFailedError, match=r"A\.u, as which"):
        task.check_new_topic("A.u", None)
    for each in ("A.v", "u", "B.u"):
        task.check_new_topic(each, SOURCE)
    task.stop()
