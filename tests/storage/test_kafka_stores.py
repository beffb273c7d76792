"""The stores in Kafka's topics keep the contracts of stores, with other writers and compaction beside them."""

from __future__ import annotations

import logging
import uuid
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from dataclasses import replace

import pytest

from headrace.connect.errors import FencedError, RetriableError
from headrace.kafka.admin import CompactedTopic, KafkaAdmin
from headrace.kafka.client_config import client_config, producer_config
from headrace.kafka.client_sender import make_sender
from headrace.kafka.deadline import Deadline
from headrace.kafka.topic_writer import TopicRecords, TopicWriter
from headrace.storage.config_topic import ConfigTopic, connector_entry
from headrace.storage.kafka import KafkaStorage, StorageClients, StorageTopics
from headrace.storage.memory import MemoryOffsetStore
from headrace.storage.protocols import (
    ConfigStore,
    Retention,
    SessionKey,
    Status,
    StatusStore,
    StoredConnector,
    TaskCount,
    TopicStore,
)
from headrace.testing.change_suites import ChangeStorage, ChangeStoreSuite, intent
from headrace.testing.storage_suites import ConfigStoreSuite, StatusStoreSuite, TopicStoreSuite
from waiting import until

pytestmark = pytest.mark.broker


@pytest.fixture
def names(bootstrap: str) -> StorageTopics:
    """Compacted topics of the test's own."""
    made = StorageTopics(*(f"{each}-{uuid.uuid4().hex[:8]}" for each in StorageTopics._fields))
    admin = KafkaAdmin(client_config({"bootstrap.servers": bootstrap}))
    for name in made:
        partitions = 3 if name == made.statuses else 1
        topic = CompactedTopic(name=name, partitions=partitions, replication=1)
        admin.ensure_compacted_topic(topic, Deadline.after(20))
    return made


@pytest.fixture
def open_storage(bootstrap: str, names: StorageTopics) -> Iterator[Callable[..., KafkaStorage]]:
    """Opens storages on the same topics, that are closed with the test; transactional unless that is not asked for."""
    properties = {"bootstrap.servers": bootstrap}
    with ExitStack() as opened:

        def open_one(
            *, is_atomic: bool = True, generation: Callable[[], int] | None = None
        ) -> KafkaStorage:
            writer = f"connect-cluster-{names.configs}" if is_atomic else None
            storage = KafkaStorage(
                names,
                StorageClients(
                    reader=client_config(properties),
                    leader=producer_config(properties, transactional_id=writer),
                    worker=producer_config(properties),
                ),
                generation=generation,
            )
            return opened.enter_context(closing(storage))

        yield open_one


@pytest.fixture
def storage(open_storage: Callable[..., KafkaStorage]) -> KafkaStorage:
    """An empty storage."""
    return open_storage()


class TestKafkaConfigs(ConfigStoreSuite):
    """Configurations in Kafka, each write a transaction."""

    @pytest.fixture
    def store(self, storage: KafkaStorage) -> ConfigStore:
        """An empty store."""
        return storage.configs


class TestKafkaConfigsWithoutTransactions(ConfigStoreSuite):
    """Configurations in Kafka, at least once."""

    @pytest.fixture
    def store(self, open_storage: Callable[..., KafkaStorage]) -> ConfigStore:
        """An empty store."""
        return open_storage(is_atomic=False).configs


class TestKafkaStatuses(StatusStoreSuite):
    """Statuses in Kafka."""

    @pytest.fixture
    def store(self, storage: KafkaStorage) -> StatusStore:
        """An empty store."""
        return storage.statuses


class TestKafkaTopics(TopicStoreSuite):
    """Active topics in Kafka."""

    @pytest.fixture
    def store(self, storage: KafkaStorage) -> TopicStore:
        """An empty store."""
        return storage.topics


class TestKafkaChanges(ChangeStoreSuite):
    """Changes of offsets in Kafka, beside configurations."""

    @pytest.fixture
    def storage(self, open_storage: Callable[..., KafkaStorage]) -> ChangeStorage:
        """An empty storage; offsets are elsewhere."""
        opened = open_storage()
        return ChangeStorage(
            changes=opened.changes, offsets=MemoryOffsetStore(), configs=opened.configs
        )

    def test_offsets_of_the_same_storage_are_stored_with_the_change(
        self, storage: ChangeStorage
    ) -> None:
        """There are none in this storage, and none are lost unnoticed."""
        begun = storage.changes.begin(intent(), Retention())
        with pytest.raises(ValueError, match="not stored with the changes"):
            storage.changes.finish(begun, [(b"k", b"v")])

        assert [begun] == list(storage.changes.open_intents())


def test_another_worker_reads_what_was_written(open_storage: Callable[..., KafkaStorage]) -> None:
    """Once it reads to the end; its own writes see it at once."""
    one, other = open_storage(is_atomic=False), open_storage(is_atomic=False)
    stored = StoredConnector(name="c", config={"a": "1"}, target_state="STOPPED")
    status = Status(state="RUNNING", worker_id="w", generation=2, version="1.0")
    one.configs.put_connector(stored)
    one.configs.put_task_configs("c", [{"n": "0"}])
    one.statuses.put("c", 0, status)
    one.topics.put("c", ["t"])
    begun = one.changes.begin(intent(), Retention())
    assert one.flush()

    assert other.configs.connector("c") is None
    other.refresh()
    assert stored == other.configs.connector("c")
    assert [{"n": "0"}] == list(other.configs.task_configs("c"))
    assert {0: status} == other.statuses.statuses("c")
    assert ["t"] == list(other.topics.topics("c"))
    assert [begun] == list(other.changes.open_intents())

    other.configs.put_connector(StoredConnector(name="d", config={}))
    one.configs.put_task_count("d", TaskCount(slots=1))
    assert {"c", "d"} == one.configs.connectors().keys()


def test_the_session_key_of_the_leader_reaches_the_others(
    open_storage: Callable[..., KafkaStorage],
) -> None:
    """It has the key at once, and they once they have read on; the last one counts."""
    leader, other = open_storage(), open_storage(is_atomic=False)
    key = SessionKey(key=b"\x00secret", algorithm="HmacSHA256", created_ms=1)
    leader.refresh()
    assert leader.session_key is None

    leader.put_session_key(key)

    assert key == leader.session_key
    assert other.session_key is None
    other.refresh()
    assert key == other.session_key
    later = SessionKey(key=b"next", algorithm="HmacSHA256", created_ms=2)
    leader.put_session_key(later)
    other.refresh()
    assert later == other.session_key


def levels_told(storage: KafkaStorage) -> list[tuple[str, str]]:
    """Those that the storage tells of from now on, in which all until now has been read."""
    told = list[tuple[str, str]]()
    storage.refresh()
    storage.follow_levels(lambda *level: told.append(level))
    return told


def test_any_worker_tells_all_of_a_level(open_storage: Callable[..., KafkaStorage]) -> None:
    """Beside the leader's transactions; who comes later is not told (KIP-976)."""
    leader, other = open_storage(), open_storage(is_atomic=False)
    leader.take_lead()
    told = [levels_told(leader), levels_told(other)]

    other.put_level("org.apache", "DEBUG")
    leader.configs.put_task_count("c", TaskCount(slots=1))
    leader.put_level("org.apache", "INFO")
    told.append(levels_told(open_storage(is_atomic=False)))
    leader.refresh()
    other.refresh()

    both = [("org.apache", "DEBUG"), ("org.apache", "INFO")]
    assert [both, both, []] == told
    assert TaskCount(slots=1) == other.configs.task_count("c")


def test_numbers_of_changes_are_not_given_twice(open_storage: Callable[..., KafkaStorage]) -> None:
    """Where another leader has begun some meanwhile."""
    one, other = open_storage(is_atomic=False), open_storage(is_atomic=False)
    begun = [each.changes.begin(intent(), Retention()) for each in (one, other, one)]

    assert [1, 2, 3] == [each.entry.id for each in begun]


def test_only_a_configuration_is_written_again(
    storage: KafkaStorage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its record restarts the connector, wherever it runs; a new one needs its tasks again, though they are the same."""
    written, write = list[int](), TopicWriter.write

    def counting(self: TopicWriter, parts: Sequence[TopicRecords], deadline: Deadline) -> None:
        written.append(sum(len(entries) for _, entries in parts))
        write(self, parts, deadline)

    monkeypatch.setattr(TopicWriter, "write", counting)
    for version in ("1", "1", "2"):
        storage.configs.put_connector(StoredConnector(name="c", config={"v": version}))
        storage.configs.put_task_configs("c", [{"n": "0"}])
    for _ in range(2):
        storage.configs.put_target_state("c", "PAUSED")
    paused = StoredConnector(name="c", config={"v": "2"}, target_state="PAUSED")
    assert paused == storage.configs.connector("c")
    for _ in range(2):
        storage.configs.delete_connector("c")

    assert [1, 2, 1, 1, 2, 1, 2] == written


def test_a_configuration_that_is_written_again_has_another_number(
    open_storage: Callable[..., KafkaStorage],
) -> None:
    """So that the worker that runs the connector can tell; so has one that is stopped, and one that is paused has not."""
    one, other = open_storage(is_atomic=False), open_storage(is_atomic=False)
    stored = StoredConnector(name="c", config={"a": "1"})
    one.configs.put_connector(stored)
    other.refresh()
    first = other.start_number("c")

    one.configs.put_connector(stored)
    other.refresh()
    second = other.start_number("c")
    one.configs.put_target_state("c", "PAUSED")
    other.refresh()
    paused = other.start_number("c")
    one.configs.put_target_state("c", "STOPPED")
    other.refresh()

    assert 0 == other.start_number("d")
    assert second == paused
    assert len({0, first, second, other.start_number("c")}) == 4


def test_a_writer_that_was_replaced_writes_nothing(
    open_storage: Callable[..., KafkaStorage],
) -> None:
    """It is fenced, in either topic."""
    old, new = open_storage(), open_storage()
    old.configs.put_connector(StoredConnector(name="c", config={}))
    new.configs.put_connector(StoredConnector(name="d", config={}))
    with pytest.raises(FencedError):
        old.configs.delete_connector("c")

    new.refresh()
    assert {"c", "d"} == new.configs.connectors().keys()
    begun = new.changes.begin(intent(), Retention())
    assert [begun] == list(new.changes.open_intents())


def test_a_leader_that_was_fenced_may_be_asked_again(
    open_storage: Callable[..., KafkaStorage],
) -> None:
    """Another worker thought that it led, for a moment; what it wrote is seen before anything else is written."""
    leader, other = open_storage(), open_storage()
    leader.configs.put_connector(StoredConnector(name="c", config={"a": "1"}))
    other.configs.put_target_state("c", "PAUSED")
    changed = StoredConnector(name="c", config={"a": "2"}, target_state="PAUSED")
    with pytest.raises(FencedError):
        leader.configs.put_connector(changed)

    leader.configs.put_connector(changed)
    assert changed == leader.configs.connector("c")
    with pytest.raises(FencedError):
        other.configs.delete_connector("c")
    other.refresh()
    assert changed == other.configs.connector("c")


def test_a_record_that_cannot_be_read_is_logged_and_passed_over(
    bootstrap: str, storage: KafkaStorage, names: StorageTopics, caplog: pytest.LogCaptureFixture
) -> None:
    """With its place; what comes after it counts."""
    writer = TopicWriter(
        producer_config({"bootstrap.servers": bootstrap}), what="records", open_seconds=20
    )
    entries = [
        (b"connector-a", b'{"properties":{}}'),
        (b"connector-b", b"damaged"),
        (b"connector-c", b'{"properties":{}}'),
    ]
    with closing(writer):
        writer.write([(names.configs, entries)], Deadline.after(20))
    with caplog.at_level(logging.WARNING):
        storage.refresh()

    assert {"a", "c"} == storage.configs.connectors().keys()
    told = f"A record of topic {names.configs!r} is passed over (partition 0, offset 1)"
    assert told in caplog.text


def test_who_takes_the_lead_ends_what_the_one_before_has_begun(
    bootstrap: str, names: StorageTopics, open_storage: Callable[..., KafkaStorage]
) -> None:
    """Its open transaction would keep everyone from reading on for as long as it may be open."""
    writer = f"connect-cluster-{names.configs}"
    dying = make_sender(
        producer_config({"bootstrap.servers": bootstrap}, transactional_id=writer), owner="dying"
    )
    with closing(dying):
        dying.open()
        dying.begin()
        dying.send_offsets(names.configs, [connector_entry("c", {"a": "1"})])
        dying.flush()
        next_one = open_storage()
        with pytest.raises(RetriableError, match="not reached in time"):
            next_one.refresh(0.2)
        with ThreadPoolExecutor(1) as reading:
            # A run, say, which reads how many tasks the connector has.
            waits = reading.submit(next_one.refresh)
            until(waits.running)
            next_one.take_lead()
            waits.result()
        next_one.refresh()

        assert {} == next_one.configs.connectors()
        with pytest.raises(FencedError):
            dying.commit()
    next_one.configs.put_connector(StoredConnector(name="d", config={"a": "1"}))
    assert ["d"] == list(next_one.configs.connectors())


def put_state(store: StatusStore) -> None:
    """The old owner runs it."""
    store.put("c", 0, Status(state="RUNNING", worker_id="old"))


def remove_states(store: StatusStore) -> None:
    """The old leader has deleted it."""
    store.forget("c")


@pytest.mark.parametrize("act", [put_state, remove_states])
def test_what_waited_is_not_written_over_the_state_of_a_later_owner(
    open_storage: Callable[..., KafkaStorage],
    monkeypatch: pytest.MonkeyPatch,
    act: Callable[[StatusStore], None],
) -> None:
    """Kafka does not take what a worker writes, which the group goes on without meanwhile; then Kafka takes it."""
    generation = 2
    old = open_storage(generation=lambda: 3)
    new = open_storage(generation=lambda: generation)
    running = Status(state="RUNNING", worker_id="new")
    new.statuses.put("c", 0, running)
    assert new.flush()
    old.refresh()
    is_away, write = True, TopicWriter.write

    def refusing(self: TopicWriter, parts: Sequence[TopicRecords], deadline: Deadline) -> None:
        values = [value for _, entries in parts for _, value in entries]
        if is_away and any(value is None or b"old" in value for value in values):
            raise RetriableError("The broker is away.")
        write(self, parts, deadline)

    monkeypatch.setattr(TopicWriter, "write", refusing)
    act(old.statuses)
    until(lambda: old.failure)
    generation = 5
    new.statuses.put("c", 0, running)
    assert new.flush()
    is_away = False

    assert old.flush()
    new.refresh()
    for each in (old, new):
        assert {0: replace(running, generation=5)} == each.statuses.statuses("c")


def test_states_of_a_group_that_begins_anew_are_written(
    open_storage: Callable[..., KafkaStorage],
) -> None:
    """Brokers forget a group without members, and count its generations from one again."""
    before, after = open_storage(generation=lambda: 57), open_storage(generation=lambda: 1)
    before.statuses.put("c", 0, Status(state="RUNNING", worker_id="new"))
    assert before.flush()
    after.refresh()
    put_state(after.statuses)
    assert after.flush()

    before.refresh()
    assert "old" == before.statuses.statuses("c")[0].worker_id


@pytest.mark.parametrize(("is_atomic", "offsets"), [(False, [1, 2]), (True, [1, 3])])
def test_a_record_is_applied_before_the_config_offset_counts_it_and_then_the_follower_is_told(
    open_storage: Callable[..., KafkaStorage],
    monkeypatch: pytest.MonkeyPatch,
    *,
    is_atomic: bool,
    offsets: list[int],
) -> None:
    """Another thread that looks in between would keep what it found as that of an offset that holds more.

    Ends of transactions do not count, as with workers of Kafka Connect.
    """
    applied: list[tuple[bytes | None, int]] = []
    apply = ConfigTopic.apply

    def watched(self: ConfigTopic, key: bytes | None, value: bytes | None) -> None:
        apply(self, key, value)
        applied.append((key, storage.config_offset))

    monkeypatch.setattr(ConfigTopic, "apply", watched)
    storage = open_storage(is_atomic=is_atomic)
    told: list[int] = []
    storage.follow_configs(lambda: told.append(storage.config_offset))

    for name in ("a", "b"):
        storage.configs.put_connector(StoredConnector(name=name, config={"name": name}))

    assert [(b"connector-a", -1), (b"connector-b", 1)] == applied
    assert offsets == told
    storage.refresh()
    assert offsets[-1] == storage.config_offset
