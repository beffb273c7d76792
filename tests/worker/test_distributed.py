"""What a worker of a group reads of what the others have written."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from typing import cast
from uuid import uuid4

import pytest

from headrace.herder.worker_herder import WorkerHerder
from headrace.kafka.admin import CompactedTopic, KafkaAdmin
from headrace.kafka.client_config import client_config, producer_config
from headrace.kafka.deadline import Deadline
from headrace.storage.kafka import KafkaStorage, StorageClients, StorageTopics
from headrace.storage.protocols import TaskCount
from headrace.worker.distributed import _TaskCounts

pytestmark = pytest.mark.broker


@pytest.fixture
def open_storage(bootstrap: str) -> Iterator[Callable[[], KafkaStorage]]:
    """Opens storages on the same topics, of workers of one group."""
    names = StorageTopics(*(f"{each}-{uuid4().hex[:8]}" for each in StorageTopics._fields))
    properties = {"bootstrap.servers": bootstrap}
    admin = KafkaAdmin(client_config(properties))
    for name in names:
        admin.ensure_compacted_topic(
            CompactedTopic(name=name, partitions=1, replication=1), Deadline.after(20)
        )
    with ExitStack() as opened:

        def open_one() -> KafkaStorage:
            clients = StorageClients(
                reader=client_config(properties),
                leader=producer_config(properties),
                worker=producer_config(properties),
            )
            return opened.enter_context(closing(KafkaStorage(names, clients)))

        yield open_one


def test_who_fences_knows_all_tasks_that_may_write_as_of_now(
    open_storage: Callable[[], KafkaStorage],
) -> None:
    """An older and smaller count would leave some of them unfenced."""
    leader, worker = open_storage(), open_storage()
    # It only reads.
    counts = _TaskCounts(worker, cast("WorkerHerder", None))
    leader.configs.put_task_count("c", TaskCount(slots=1))
    assert TaskCount(slots=1) == counts.task_count("c")
    leader.configs.put_task_count("c", TaskCount(slots=3))

    assert TaskCount(slots=3) == counts.task_count("c")
