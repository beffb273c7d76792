"""The conformance suites of stores: subclass one, define its ``store`` fixture, and inherit its tests."""

from __future__ import annotations

import pytest

from headrace.connect.partition import SourcePartition
from headrace.offsets.store import OffsetRecordStore, OffsetStore
from headrace.storage.protocols import (
    ConfigStore,
    SettingStore,
    Status,
    StatusStore,
    StoredConnector,
    TaskCount,
    TopicStore,
)

FILE_A = SourcePartition(filename="a")
FILE_B = SourcePartition(filename="b")


class OffsetStoreSuite:
    """Tests an :class:`~headrace.offsets.store.OffsetStore`; ``store`` is empty and new each time."""

    @pytest.fixture
    def store(self) -> OffsetStore:
        """The store under test; a subclass replaces this."""
        raise NotImplementedError

    def test_an_empty_store_knows_nothing(self, store: OffsetStore) -> None:
        """An empty store gives an empty mapping, not an error."""
        store.refresh()

        assert store.known("c") == {}

    def test_what_was_put_is_known_after_a_refresh(self, store: OffsetStore) -> None:
        """An offset comes back as it was put."""
        store.put("c", {FILE_A: {"position": 7}, FILE_B: {"position": 2**62}})
        store.refresh()

        assert store.known("c") == {FILE_A: {"position": 7}, FILE_B: {"position": 2**62}}

    def test_the_last_offset_of_a_partition_counts(self, store: OffsetStore) -> None:
        """Later puts replace earlier ones, and leave other partitions alone."""
        store.put("c", {FILE_A: {"position": 1}, FILE_B: {"position": 5}})
        store.put("c", {FILE_A: {"position": 2}})
        store.refresh()

        assert store.known("c") == {FILE_A: {"position": 2}, FILE_B: {"position": 5}}

    def test_none_removes_an_offset(self, store: OffsetStore) -> None:
        """A removed partition is unknown, and removing one that was never there is not an error."""
        store.put("c", {FILE_A: {"position": 1}})
        store.refresh()
        store.put("c", {FILE_A: None, FILE_B: None})
        store.refresh()

        assert store.known("c") == {}

    def test_connectors_do_not_see_each_other(self, store: OffsetStore) -> None:
        """The same partition of two connectors is two partitions."""
        store.put("one", {FILE_A: {"position": 1}})
        store.put("two", {FILE_A: {"position": 2}})
        store.refresh()

        assert store.known("one") == {FILE_A: {"position": 1}}
        assert store.known("two") == {FILE_A: {"position": 2}}

    def test_known_is_a_snapshot(self, store: OffsetStore) -> None:
        """What ``known`` returned does not change with later puts and refreshes."""
        store.put("c", {FILE_A: {"position": 1}})
        store.refresh()
        before = store.known("c")
        store.put("c", {FILE_A: {"position": 2}})
        store.refresh()

        assert before == {FILE_A: {"position": 1}}

    def test_the_order_of_entries_does_not_matter(self, store: OffsetStore) -> None:
        """A partition is found and replaced whatever the order in which its entries are given."""
        store.put("c", {SourcePartition({"topic": "t", "partition": 0}): {"offset": 1}})
        store.put("c", {SourcePartition({"partition": 0, "topic": "t"}): {"offset": 2}})
        store.refresh()

        assert {SourcePartition(topic="t", partition=0): {"offset": 2}} == store.known("c")

    def test_every_kind_of_value_is_kept(self, store: OffsetStore) -> None:
        """Null, booleans, numbers and any text come back as they were."""
        offset = {
            "none": None,
            "yes": True,
            "int": -(2**63),
            "float": 1e10,
            "text": 'é"\\\n\x01 ☃𝄞',
        }
        partition = SourcePartition({"näme": "x", "n": 1.5, "": False})
        store.put("konnektor ☃", {partition: offset})
        store.refresh()

        assert {partition: offset} == store.known("konnektor ☃")

    def test_an_empty_offset_is_not_a_removal(self, store: OffsetStore) -> None:
        """An empty partition and an empty offset are stored like any other."""
        store.put("c", {SourcePartition(): {}})
        store.refresh()

        assert {SourcePartition(): {}} == store.known("c")


class OffsetRecordStoreSuite(OffsetStoreSuite):
    """Tests an :class:`~headrace.offsets.store.OffsetRecordStore`; ``store`` is empty and new each time."""

    @pytest.fixture
    def store(self) -> OffsetRecordStore:
        """The store under test; a subclass replaces this."""
        raise NotImplementedError

    def test_a_store_is_empty_when_no_connector_has_an_offset(
        self, store: OffsetRecordStore
    ) -> None:
        """Whichever had some before."""
        store.refresh()
        assert store.is_empty()

        store.put("c", {FILE_A: {"position": 7}})
        store.refresh()
        assert not store.is_empty()

        store.put("c", {FILE_A: None})
        store.refresh()
        assert store.is_empty()

    def test_entries_are_the_records_of_a_put(self, store: OffsetRecordStore) -> None:
        """For callers that write them elsewhere; asking for them stores nothing."""
        store.refresh()
        entries = store.entries_for("c", {FILE_A: {"position": 1}, FILE_B: None})
        store.refresh()

        key = b'["c",{"filename":"%s"}]'
        assert [(key % b"a", b'{"position":1}'), (key % b"b", None)] == entries
        assert store.known("c") == {}

    def test_what_was_put_is_encoded_in_one_way(self, store: OffsetRecordStore) -> None:
        """Whatever the order in which its entries are given."""
        store.put("c", {SourcePartition({"topic": "t", "partition": 0}): {"offset": 1}})
        store.refresh()

        assert store.differently_encoded("c") == {}


class ConfigStoreSuite:
    """Tests a :class:`~headrace.storage.protocols.ConfigStore`; ``store`` is empty and new each time."""

    @pytest.fixture
    def store(self) -> ConfigStore:
        """The store under test; a subclass replaces this."""
        raise NotImplementedError

    def test_connectors_come_back_as_they_were_stored(self, store: ConfigStore) -> None:
        """Name, configuration and target state are kept."""
        stored = StoredConnector(name="ü/c", config={"a": "1", "b": ""}, target_state="PAUSED")
        store.put_connector(stored)

        assert {"ü/c": stored} == store.connectors()

    def test_the_last_configuration_counts(self, store: ConfigStore) -> None:
        """Storing a connector again replaces it as a whole."""
        store.put_connector(StoredConnector(name="c", config={"a": "1"}))
        store.put_connector(StoredConnector(name="c", config={"b": "2"}))

        assert store.connectors()["c"].config == {"b": "2"}

    def test_the_target_state_changes_alone(self, store: ConfigStore) -> None:
        """And nothing where there is no connector."""
        store.put_connector(StoredConnector(name="c", config={"a": "1"}))
        for target in ("PAUSED", "PAUSED", "STOPPED"):
            store.put_target_state("c", target)
        store.put_target_state("d", "PAUSED")

        expected = StoredConnector(name="c", config={"a": "1"}, target_state="STOPPED")
        assert {"c": expected} == store.connectors()
        store.put_target_state("c", "RUNNING")
        assert {"c": StoredConnector(name="c", config={"a": "1"})} == store.connectors()

    def test_a_deleted_connector_keeps_its_task_count(self, store: ConfigStore) -> None:
        """A connector of the same name may follow, and must fence what the first one left."""
        store.put_connector(StoredConnector(name="c", config={}))
        store.put_task_count("c", TaskCount(slots=3))
        store.delete_connector("c")

        assert store.connectors() == {}
        assert TaskCount(slots=3) == store.task_count("c")

    def test_deleting_what_is_not_there_does_nothing(self, store: ConfigStore) -> None:
        """A deletion may be repeated."""
        store.delete_connector("c")

        assert store.connectors() == {}

    def test_a_connector_is_found_by_its_name(self, store: ConfigStore) -> None:
        """With null where it was submitted; another name has no connector."""
        stored = StoredConnector(name="c", config={"a": None, "b": "1"}, target_state="STOPPED")
        store.put_connector(stored)

        assert stored == store.connector("c")
        assert store.connector("d") is None

    def test_the_tasks_of_a_connector_are_kept_until_it_is_deleted(
        self, store: ConfigStore
    ) -> None:
        """In their order, as a whole, and apart from its configuration."""
        assert list(store.task_configs("c")) == []
        store.put_connector(StoredConnector(name="c", config={}))
        store.put_connector(StoredConnector(name="d", config={}))
        store.put_task_configs("c", [{"n": "0"}, {"n": "1"}, {"n": "2"}])
        store.put_task_configs("c", [{"n": "5"}, {"n": "4"}])
        store.put_task_configs("d", [{"n": "6"}])

        assert list(store.task_configs("c")) == [{"n": "5"}, {"n": "4"}]
        store.delete_connector("c")
        assert list(store.task_configs("c")) == []
        assert list(store.task_configs("d")) == [{"n": "6"}]

    def test_the_last_task_count_counts(self, store: ConfigStore) -> None:
        """An unknown connector has no count; a later one replaces an earlier one."""
        assert store.task_count("c") is None
        store.put_task_count("c", TaskCount(slots=3))
        store.put_task_count("c", TaskCount(slots=2))

        assert TaskCount(slots=2) == store.task_count("c")


class SettingStoreSuite:
    """Tests a :class:`~headrace.storage.protocols.SettingStore`; ``store`` is empty and new each time."""

    @pytest.fixture
    def store(self) -> SettingStore:
        """The store under test; a subclass replaces this."""
        raise NotImplementedError

    def test_settings_are_kept(self, store: SettingStore) -> None:
        """A setting is unknown until it is put, and the last value counts."""
        assert store.setting("worker") is None
        store.put_setting("worker", "w1")
        store.put_setting("worker", "w2")

        assert store.setting("worker") == "w2"


class StatusStoreSuite:
    """Tests a :class:`~headrace.storage.protocols.StatusStore`; ``store`` is empty and new each time."""

    @pytest.fixture
    def store(self) -> StatusStore:
        """The store under test; a subclass replaces this."""
        raise NotImplementedError

    def test_a_connector_and_its_tasks_have_statuses(self, store: StatusStore) -> None:
        """The connector's own status is under ``None``, and every field is kept."""
        own = Status(state="RUNNING", worker_id="w:1", generation=4, version="1.0")
        failed = Status(state="FAILED", worker_id="w:1", trace="it\nbroke")
        store.put("c", None, own)
        store.put("c", 0, failed)
        store.put("other", None, failed)

        assert {None: own, 0: failed} == store.statuses("c")

    def test_the_last_status_counts(self, store: StatusStore) -> None:
        """A later status replaces an earlier one."""
        store.put("c", 1, Status(state="RUNNING", worker_id="w"))
        store.put("c", 1, Status(state="PAUSED", worker_id="w"))

        assert store.statuses("c")[1].state == "PAUSED"

    def test_a_forgotten_connector_has_no_status(self, store: StatusStore) -> None:
        """All statuses of a connector go at once; others stay."""
        store.put("c", None, Status(state="RUNNING", worker_id="w"))
        store.put("c", 0, Status(state="RUNNING", worker_id="w"))
        store.put("d", 0, Status(state="RUNNING", worker_id="w"))
        store.forget("c")

        assert store.statuses("c") == {}
        assert {0} == store.statuses("d").keys()

    def test_tasks_that_are_no_more_are_forgotten(self, store: StatusStore) -> None:
        """From a number on; the connector's own status and earlier tasks stay."""
        for task in (None, 0, 1, 2):
            store.put("c", task, Status(state="RUNNING", worker_id="w"))
        store.forget("c", from_task=1)

        assert {None, 0} == store.statuses("c").keys()

    def test_it_knows_of_whom_it_has_statuses(self, store: StatusStore) -> None:
        """Sorted, without those that were forgotten."""
        for name in ("d", "c", "e"):
            store.put(name, 0, Status(state="RUNNING", worker_id="w"))
        store.forget("e")

        assert list(store.connectors()) == ["c", "d"]


class TopicStoreSuite:
    """Tests a :class:`~headrace.storage.protocols.TopicStore`; ``store`` is empty and new each time."""

    @pytest.fixture
    def store(self) -> TopicStore:
        """The store under test; a subclass replaces this."""
        raise NotImplementedError

    def test_topics_are_kept_by_connector_and_sorted(self, store: TopicStore) -> None:
        """A topic that is added again is listed once."""
        store.put("c", ["t2", "t1"])
        store.put("c", ["t2", "t3"])
        store.put("d", ["t9"])

        assert list(store.topics("c")) == ["t1", "t2", "t3"]
        assert list(store.topics("d")) == ["t9"]
        assert list(store.topics("e")) == []

    def test_forgotten_topics_are_those_of_one_connector(self, store: TopicStore) -> None:
        """They may be added again."""
        store.put("c", ["t1"])
        store.put("d", ["t1"])
        store.forget("c")

        assert list(store.topics("c")) == []
        assert list(store.topics("d")) == ["t1"]
