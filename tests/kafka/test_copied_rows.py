"""Where decoded records have landed that a sender of our own has sent, by their source offsets."""

from __future__ import annotations

from collections.abc import Iterator
from uuid import uuid4

import pyarrow as pa
import pytest

from headrace.connect.partition import SourcePartition
from headrace.kafka.client_config import producer_config
from headrace.kafka.sender import EncodedRecords, RowsOrigin
from headrace.kafka.wire_sender import WireSender, make_wire_sender
from headrace.testing.judge import committed_records
from spark.kafka.tables import Topics

pytestmark = pytest.mark.broker

SOURCE = SourcePartition(topic="t", partition=0)


@pytest.fixture(params=[True, False], ids=["transactional", "idempotent"])
def sender(bootstrap: str, request: pytest.FixtureRequest) -> Iterator[WireSender]:
    """One with few records in a batch."""
    props = {"bootstrap.servers": bootstrap, "batch.size": "200"}
    name = f"x-{uuid4().hex}" if request.param else None
    made = make_wire_sender(producer_config(props, transactional_id=name))
    made.open()
    yield made
    made.close()


def _rows(topic: str, offsets: list[int], partition: int | None = 0) -> EncodedRecords:
    return EncodedRecords(
        topic=topic,
        partition=partition,
        values=pa.array([b"%d" % each for each in offsets], pa.binary()),
        origin=RowsOrigin(SOURCE, pa.array(offsets, pa.int64())),
    )


def test_runs_are_those_of_the_source_offsets(bootstrap: str, sender: WireSender):
    """Over the borders of batches, and apart at each gap; of this commit only."""
    topic = Topics(bootstrap).create("rows")
    other = Topics(bootstrap).create("other")
    found = []
    for offsets in ([*range(5, 50), *range(60, 70)], [70, 71, 99]):
        sender.begin()
        sender.send(_rows(topic, offsets))
        runs = sender.copied_runs()
        assert runs == sender.copied_runs()
        found.append([(run.first, run.records) for run in runs])
        for run in runs:
            assert (SOURCE, (topic, 0)) == run[:2]
        landed = {
            run.target_first + at: run.first + at for run in runs for at in range(run.records)
        }
        sender.send(_rows(other, [1]))
        sender.commit()
        by_offset = {
            each.offset: int(each.value or b"") for each in committed_records(bootstrap, topic)
        }
        assert landed.items() <= by_offset.items()

    assert [[(5, 45), (60, 10)], [(70, 2), (99, 1)]] == found
