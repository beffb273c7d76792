"""The stores in Kafka's topics keep the contracts of stores, with other writers and compaction beside them."""

from __future__ import annotations

import logging
import uuid
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing

import pytest

from headrace.connect.errors import FencedError
from headrace.kafka.admin import CompactedTopic, KafkaAdmin
from headrace.kafka.client_config import client_config, producer_config
from headrace.kafka.deadline import Deadline
from headrace.kafka.topic_writer import TopicWriter
from headrace.storage.kafka import KafkaConfigStore, KafkaStatusStore
from headrace.storage.protocols import (
    ConfigStore,
    Status,
    StatusStore,
    StoredConnector,
    TaskCount,
    TopicStore,
)
from headrace.testing.storage_suites import ConfigStoreSuite, StatusStoreSuite, TopicStoreSuite

pytestmark = pytest.mark.broker

TopicMaker = Callable[[int], str]


@pytest.fixture
def new_topic(bootstrap: str) -> TopicMaker:
    """Makes compacted topics with so many partitions."""

    def make(partitions: int) -> str:
        topic = f"storage-{uuid.uuid4().hex[:8]}"
        KafkaAdmin(client_config({"bootstrap.servers": bootstrap})).ensure_compacted_topic(
            CompactedTopic(name=topic, partitions=partitions, replication=1), Deadline.after(20)
        )
        return topic

    return make


@pytest.fixture
def opened() -> Iterator[ExitStack]:
    """Closes what a test has opened."""
    with ExitStack() as opened:
        yield opened


@pytest.fixture
def open_configs(
    bootstrap: str, new_topic: TopicMaker, opened: ExitStack
) -> Callable[..., KafkaConfigStore]:
    """Opens stores on one topic; with a transactional id where that is asked for."""
    topic = new_topic(1)

    def open_store(*, is_atomic: bool = True) -> KafkaConfigStore:
        properties = {"bootstrap.servers": bootstrap}
        store = KafkaConfigStore(
            topic,
            client=client_config(properties),
            producer=producer_config(
                properties, transactional_id=f"connect-cluster-{topic}" if is_atomic else None
            ),
        )
        return opened.enter_context(closing(store))

    return open_store


@pytest.fixture
def statuses(bootstrap: str, new_topic: TopicMaker, opened: ExitStack) -> KafkaStatusStore:
    """A store on a topic of its own."""
    properties = {"bootstrap.servers": bootstrap}
    store = KafkaStatusStore(
        new_topic(3), client=client_config(properties), producer=producer_config(properties)
    )
    return opened.enter_context(closing(store))


class TestKafkaConfigs(ConfigStoreSuite):
    """Configurations in Kafka, each write a transaction."""

    @pytest.fixture
    def store(self, open_configs: Callable[..., KafkaConfigStore]) -> ConfigStore:
        """An empty store."""
        return open_configs()


class TestKafkaConfigsWithoutTransactions(ConfigStoreSuite):
    """Configurations in Kafka, at least once."""

    @pytest.fixture
    def store(self, open_configs: Callable[..., KafkaConfigStore]) -> ConfigStore:
        """An empty store."""
        return open_configs(is_atomic=False)


class TestKafkaStatuses(StatusStoreSuite):
    """Statuses in Kafka."""

    @pytest.fixture
    def store(self, statuses: KafkaStatusStore) -> StatusStore:
        """An empty store."""
        return statuses


class TestKafkaTopics(TopicStoreSuite):
    """Active topics in Kafka."""

    @pytest.fixture
    def store(self, statuses: KafkaStatusStore) -> TopicStore:
        """An empty store."""
        return statuses.topics


def test_another_worker_reads_what_was_written(
    open_configs: Callable[..., KafkaConfigStore],
) -> None:
    """Once it reads to the end; its own writes see it at once."""
    one, other = open_configs(is_atomic=False), open_configs(is_atomic=False)
    stored = StoredConnector(name="c", config={"a": "1"}, target_state="STOPPED")
    one.put_connector(stored)
    one.put_task_configs("c", [{"n": "0"}])

    assert other.connector("c") is None
    other.refresh()
    assert stored == other.connector("c")
    assert [{"n": "0"}] == list(other.task_configs("c"))

    other.put_connector(StoredConnector(name="d", config={}))
    one.put_task_count("d", TaskCount(slots=1))
    assert {"c", "d"} == one.connectors().keys()


def test_what_is_stored_is_not_written_again(
    open_configs: Callable[..., KafkaConfigStore], caplog: pytest.LogCaptureFixture
) -> None:
    """A record restarts the tasks of Java workers; a new configuration needs its tasks again, though they are the same."""
    store, written = open_configs(), list[int]()
    write = TopicWriter.write

    def counting(self: TopicWriter, steps: list[list[object]]) -> None:
        written.extend(map(len, steps))
        write(self, steps)  # pyright: ignore[reportArgumentType]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(TopicWriter, "write", counting)
        for version in ("1", "1", "2"):
            store.put_connector(StoredConnector(name="c", config={"v": version}))
            store.put_task_configs("c", [{"n": "0"}])
        store.put_connector(StoredConnector(name="c", config={"v": "2"}, target_state="PAUSED"))
        store.delete_connector("c")
        store.delete_connector("c")

    assert [1, 2, 1, 2, 1, 2] == written


def test_a_writer_that_was_replaced_writes_nothing(
    open_configs: Callable[..., KafkaConfigStore],
) -> None:
    """Until it takes the transactional id back, which only a leader may do."""
    old, new = open_configs(), open_configs()
    old.put_connector(StoredConnector(name="c", config={}))
    new.put_connector(StoredConnector(name="d", config={}))
    with pytest.raises(FencedError):
        old.delete_connector("c")

    new.refresh()
    assert {"c", "d"} == new.connectors().keys()


def test_a_record_that_cannot_be_read_is_logged_and_passed_over(
    bootstrap: str, new_topic: TopicMaker, opened: ExitStack, caplog: pytest.LogCaptureFixture
) -> None:
    """With its place; what comes after it counts."""
    topic, properties = new_topic(1), {"bootstrap.servers": bootstrap}
    writer = TopicWriter(topic, producer_config(properties), what="records", seconds=20)
    opened.callback(writer.close)
    entries = [
        (b"connector-a", b'{"properties":{}}'),
        (b"connector-b", b"damaged"),
        (b"connector-c", b'{"properties":{}}'),
    ]
    writer.write([entries])
    store = KafkaConfigStore(
        topic, client=client_config(properties), producer=producer_config(properties)
    )
    opened.callback(store.close)
    with caplog.at_level(logging.WARNING):
        store.refresh()

    assert {"a", "c"} == store.connectors().keys()
    assert f"A record of topic {topic!r} is passed over (partition 0, offset 1)" in caplog.text


def test_statuses_of_others_are_seen(statuses: KafkaStatusStore) -> None:
    """Also those that were written while this store wrote."""
    status = Status(state="RUNNING", worker_id="w", generation=2, version="1.0")
    statuses.put("c", 0, status)
    statuses.topics.put("c", ["t"])
    statuses.refresh()

    assert {0: status} == statuses.statuses("c")
    assert ["t"] == list(statuses.topics.topics("c"))
