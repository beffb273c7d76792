"""What the store of configurations writes to its topics, and in which order, with topics that may refuse it."""

from __future__ import annotations

import pytest

from doubles.written_topics import WrittenTopics
from headrace.connect.errors import FencedError
from headrace.storage.changes_topic import ChangesTopic
from headrace.storage.config_topic import (
    ConfigTopic,
    connector_entry,
    target_state_entry,
    task_entries,
)
from headrace.storage.kafka import KafkaConfigStore, StorageTopics
from headrace.storage.protocols import StoredConnector

NAMES = StorageTopics("configs", "statuses", "changes")
TASKS = [{"task.class": "x:T", "n": "0"}, {"task.class": "x:T", "n": "1"}]


@pytest.fixture
def topics() -> WrittenTopics:
    """Empty ones."""
    return WrittenTopics()


@pytest.fixture
def store(topics: WrittenTopics) -> KafkaConfigStore:
    """A store on them."""
    found = ConfigTopic()
    topics.follow(NAMES.configs, found.apply)
    return KafkaConfigStore(topics.shared(), NAMES, found, ChangesTopic())


def connector(**more: str) -> StoredConnector:
    """One of the name ``c``."""
    return StoredConnector(name="c", config={"a": "1"}, **more)


def test_a_connector_is_not_there_before_its_state_is(
    store: KafkaConfigStore, topics: WrittenTopics
) -> None:
    """Whoever reads of one that is created as stopped never sees it running; without a state one runs."""
    store.put_connector(connector(target_state="STOPPED"))
    store.put_connector(StoredConnector(name="d", config={}))

    assert [
        target_state_entry("c", "STOPPED"),
        connector_entry("c", {"a": "1"}),
        connector_entry("d", {}),
    ] == topics.written


def test_a_connector_is_gone_before_its_state_is(
    store: KafkaConfigStore, topics: WrittenTopics
) -> None:
    """Whoever reads of a stopped one that is deleted never sees it running; of one that is not there nothing is written."""
    store.put_connector(connector(target_state="STOPPED"))
    topics.written.clear()
    store.delete_connector("c")
    store.delete_connector("other")

    assert [connector_entry("c", None), target_state_entry("c", None)] == topics.written
    assert {} == store.connectors()


def test_what_is_refused_is_not_stored(store: KafkaConfigStore, topics: WrittenTopics) -> None:
    """The error is who asked's to know; asked again, it is stored."""
    topics.refusals.append(FencedError("Another worker leads."))
    with pytest.raises(FencedError, match="Another worker leads"):
        store.put_connector(connector())
    assert {} == store.connectors()

    store.put_connector(connector())
    assert {"c": connector()} == store.connectors()


def test_a_state_of_a_connector_that_is_not_there_is_not_written(
    store: KafkaConfigStore, topics: WrittenTopics
) -> None:
    """Nor one that it has."""
    store.put_connector(connector(target_state="PAUSED"))
    topics.written.clear()
    store.put_target_state("c", "PAUSED")
    store.put_target_state("other", "STOPPED")
    assert [] == topics.written

    store.put_target_state("c", "RUNNING")
    assert [target_state_entry("c", "RUNNING")] == topics.written


@pytest.mark.parametrize("count", [0, 1, 2])
def test_tasks_are_written_before_what_puts_them_in_force(
    store: KafkaConfigStore, topics: WrittenTopics, count: int
) -> None:
    """And once for each configuration: it is known from then on how many there are."""
    store.put_connector(connector())
    assert store.published_tasks("c") is None
    for _ in range(2):
        store.put_task_configs("c", TASKS[:count])

    assert [connector_entry("c", {"a": "1"}), *task_entries("c", TASKS[:count])] == topics.written
    assert TASKS[:count] == list(store.task_configs("c"))
    assert count == (store.published_tasks("c") or 0)


def test_another_configuration_needs_tasks_of_its_own(
    store: KafkaConfigStore, topics: WrittenTopics
) -> None:
    """Also where they are the same: how many there are is not known until they are made from it."""
    store.put_connector(connector())
    store.put_task_configs("c", TASKS)
    store.put_connector(StoredConnector(name="c", config={"a": "2"}))
    assert (TASKS, None) == (list(store.task_configs("c")), store.published_tasks("c"))

    topics.written.clear()
    store.put_task_configs("c", TASKS)
    assert task_entries("c", TASKS) == topics.written
    assert 2 == store.published_tasks("c")


def test_tasks_of_which_compaction_has_taken_one_are_written_again(
    store: KafkaConfigStore, topics: WrittenTopics
) -> None:
    """Until then there are none; also a set without any puts an end to it."""
    store.put_connector(connector())
    for tasks in (TASKS, []):
        topics.arrives(NAMES.configs, *task_entries("c", TASKS)[1:])
        assert ([], None) == (list(store.task_configs("c")), store.published_tasks("c"))
        topics.written.clear()
        store.put_task_configs("c", tasks)
        assert task_entries("c", tasks) == topics.written
        assert tasks == list(store.task_configs("c"))
