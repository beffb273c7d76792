"""Topics and readers for tests on a real broker."""

from __future__ import annotations

import uuid
import warnings
from collections.abc import Callable

import pytest
from confluent_kafka.admin import AdminClient, NewTopic

from headrace.kafka.admin import CompactedTopic, KafkaAdmin
from headrace.kafka.client_config import client_config
from headrace.kafka.deadline import Deadline


@pytest.fixture
def new_topic(bootstrap: str) -> str:
    """An ordinary topic of the test's own, with three partitions."""
    topic = f"kafka-tests-{uuid.uuid4().hex[:8]}"
    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.create_topics([NewTopic(topic, 3, 1)])[topic].result()
    return topic


@pytest.fixture
def compacted_topic(bootstrap: str) -> str:
    """A compacted topic of the test's own, with three partitions; it refuses records without a key."""
    topic = f"kafka-tests-{uuid.uuid4().hex[:8]}"
    admin = KafkaAdmin(client_config({"bootstrap.servers": bootstrap}))
    wanted = CompactedTopic(name=topic, partitions=3, replication=1)
    admin.ensure_compacted_topic(wanted, Deadline.after(20))
    return topic


Committed = list[tuple[int, bytes | None, bytes | None]]


@pytest.fixture
def read_committed(bootstrap: str) -> Callable[[str], Committed]:
    """Partition, key and value of every committed record, read by another client library."""
    with warnings.catch_warnings():
        # kafka-python reads its own schemas in a way that Python 3.11 and 3.12 called outdated.
        warnings.simplefilter("ignore", DeprecationWarning)
        from headrace.testing.judge import committed_records

    def read(topic: str) -> Committed:
        found = committed_records(bootstrap, topic)
        return [(one.partition, one.key, one.value) for one in found]

    return read
