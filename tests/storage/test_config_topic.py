"""The records of Kafka Connect's config topic, and what they add up to."""

from __future__ import annotations

import json
import logging
import time
import tracemalloc
from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.observe.log_levels import Levels
from headrace.storage.config_topic import (
    ConfigTopic,
    connector_entry,
    logger_entry,
    session_key_entry,
    target_state_entry,
    task_count_entry,
    task_entries,
)
from headrace.storage.protocols import SessionKey, StoredConnector, TaskCount
from headrace.storage.topic_records import UnreadableRecordError

TASKS = [{"task.class": "T", "x": "0"}, {"task.class": "T", "x": "1"}]


def topic_of(*records: tuple[str, object]) -> ConfigTopic:
    """What these records add up to; a value is written as JSON, ``None`` is a tombstone."""
    topic = ConfigTopic()
    for key, value in records:
        topic.apply(key.encode(), None if value is None else json.dumps(value).encode())
    return topic


def properties(**values: str) -> Mapping[str, Mapping[str, str]]:
    """The value of a connector's or a task's record."""
    return {"properties": values}


def test_records_are_those_of_kafka_connect() -> None:
    """Of a connector that is created as stopped, resumed with two tasks, paused, stopped, and deleted."""
    config = {"connector.class": "C", "name": "m", "tasks.max": "2", "none": None}
    written = [
        target_state_entry("m", "STOPPED"),
        connector_entry("m", config),
        target_state_entry("m", "RUNNING"),
        *task_entries("m", TASKS),
        task_count_entry("m", TaskCount(slots=2)),
        target_state_entry("m", "PAUSED"),
        *task_entries("m", []),
        connector_entry("m", None),
        target_state_entry("m", None),
    ]

    assert [
        (b"target-state-m", b'{"state":"PAUSED","state.v2":"STOPPED"}'),
        (
            b"connector-m",
            b'{"properties":{"connector.class":"C","name":"m","tasks.max":"2","none":null}}',
        ),
        (b"target-state-m", b'{"state":"STARTED","state.v2":"STARTED"}'),
        (b"task-m-0", b'{"properties":{"task.class":"T","x":"0"}}'),
        (b"task-m-1", b'{"properties":{"task.class":"T","x":"1"}}'),
        (b"commit-m", b'{"tasks":2}'),
        (b"tasks-fencing-m", b'{"task-count":2}'),
        (b"target-state-m", b'{"state":"PAUSED","state.v2":"PAUSED"}'),
        (b"commit-m", b'{"tasks":0}'),
        (b"connector-m", None),
        (b"target-state-m", None),
    ] == written


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ({"state": "STARTED"}, "RUNNING"),
        ({"state": "PAUSED"}, "PAUSED"),
        ({"state": "PAUSED", "state.v2": "STOPPED"}, "STOPPED"),
        (None, "RUNNING"),
    ],
)
def test_the_target_state_is_that_of_the_newer_field(value: object, expected: str) -> None:
    """Workers before 3.5 write only the older one; without a record a connector runs."""
    topic = topic_of(
        ("target-state-c", {"state": "PAUSED"}),
        ("connector-c", properties()),
        ("target-state-c", value),
    )

    assert StoredConnector(name="c", config={}, target_state=expected) == topic.connector("c")


def test_tasks_are_in_force_once_they_are_committed() -> None:
    """Those of an earlier set beyond the new number are left in the topic, and count no more."""
    topic = topic_of(("connector-c", properties(v="1")))
    for key, value in task_entries("c", [*TASKS, {"x": "2"}]):
        topic.apply(key, value)
    applied = topic.records("c").applied
    topic.apply(*connector_entry("c", {"v": "2"}))
    topic.apply(b"task-c-0", b'{"properties":{"x":"new"}}')

    assert (*TASKS, {"x": "2"}) == topic.records("c").tasks
    assert {"v": "1"} == applied == topic.records("c").applied
    topic.apply(b"commit-c", b'{"tasks":1}')
    assert ({"x": "new"},) == topic.records("c").tasks
    assert {"v": "2"} == topic.records("c").applied


def test_tasks_of_which_one_is_missing_are_none() -> None:
    """Compaction has taken it, or a writer died; the next complete set counts again."""
    topic = topic_of(
        ("connector-c", properties()),
        ("task-c-1", properties(x="1")),
        ("commit-c", {"tasks": 2}),
    )

    assert (True, ()) == (topic.records("c").is_inconsistent, topic.records("c").tasks)
    for key, value in task_entries("c", TASKS):
        topic.apply(key, value)
    assert (False, tuple(TASKS)) == (topic.records("c").is_inconsistent, topic.records("c").tasks)


def test_a_topic_is_replayed_to_its_last_committed_records() -> None:
    """A later configuration counts, a later task does not before its commit; counts are kept, also of what is no connector."""
    topic = topic_of(
        ("tasks-fencing-c", {"task-count": 6}),
        ("connector-c", properties(v="1")),
        ("task-c-0", properties(x="0")),
        ("task-c-1", properties(x="1")),
        ("connector-c", properties(v="2")),
        ("commit-c", {"tasks": 2}),
        ("tasks-fencing-d", {"task-count": 9}),
        ("connector-c", properties(v="3")),
        ("task-c-0", properties(x="later")),
    )

    assert {"c": StoredConnector(name="c", config={"v": "3"})} == topic.connectors()
    found = topic.records("c")
    assert ({"x": "0"}, {"x": "1"}) == found.tasks
    assert ({"v": "2"}, False) == (found.applied, found.is_inconsistent)
    assert TaskCount(slots=6) == found.count
    assert TaskCount(slots=9) == topic.records("d").count


def test_tasks_are_fenced_once_their_count_is_written() -> None:
    """As Kafka Connect's leader sees it: the next set of tasks is not, before its own."""
    topic = topic_of(("tasks-fencing-c", {"task-count": 6}), ("connector-c", properties()))
    for key, value in task_entries("c", TASKS):
        topic.apply(key, value)
    assert not topic.records("c").is_fenced
    topic.apply(b"tasks-fencing-c", b'{"task-count":2}')
    assert topic.records("c").is_fenced

    for key, value in task_entries("c", TASKS):
        topic.apply(key, value)
    assert not topic.records("c").is_fenced


@pytest.mark.parametrize("had", [0, 2])
def test_a_connector_may_have_no_tasks(had: int) -> None:
    """Those that it had are gone, and nothing is missing; what was not committed with them does not come back."""
    topic = topic_of(("connector-c", properties()))
    for key, value in task_entries("c", TASKS[:had]):
        topic.apply(key, value)
    topic.apply(b"task-c-0", b'{"properties":{"x":"later"}}')
    topic.apply(b"commit-c", b'{"tasks":0}')
    assert (False, ()) == (topic.records("c").is_inconsistent, topic.records("c").tasks)

    topic.apply(b"commit-c", b'{"tasks":1}')
    assert (True, ()) == (topic.records("c").is_inconsistent, topic.records("c").tasks)


def test_tasks_of_a_set_that_was_not_complete_do_not_complete_another_one() -> None:
    """Each commit needs its own; a smaller set that is complete puts an end to it."""
    topic = topic_of(
        ("connector-c", properties()),
        ("task-c-1", properties(x="1")),
        ("commit-c", {"tasks": 2}),
        ("task-c-0", properties(x="0")),
        ("commit-c", {"tasks": 2}),
    )
    assert (True, None) == (topic.records("c").is_inconsistent, topic.records("c").applied)

    for key, value in task_entries("c", TASKS[:1]):
        topic.apply(key, value)
    assert (False, (TASKS[0],)) == (topic.records("c").is_inconsistent, topic.records("c").tasks)


def test_tasks_of_a_deleted_connector_are_not_those_of_the_next_one_of_its_name() -> None:
    """Neither those in force nor those that wait for their commit, which may come after the deletion."""
    topic = topic_of(("connector-c", properties()))
    for key, value in task_entries("c", TASKS):
        topic.apply(key, value)
    topic.apply(b"task-c-0", b'{"properties":{"x":"later"}}')
    topic.apply(*connector_entry("c", None))
    assert () == topic.records("c").tasks
    topic.apply(*connector_entry("c", {}))
    topic.apply(b"commit-c", b'{"tasks":1}')

    assert (True, ()) == (topic.records("c").is_inconsistent, topic.records("c").tasks)


def test_a_target_state_may_come_before_its_connector() -> None:
    """As it does when a connector is created as stopped; alone it makes none."""
    topic = topic_of(
        ("connector-c", properties()),
        ("target-state-c", {"state": "PAUSED"}),
        ("target-state-d", {"state": "PAUSED", "state.v2": "STOPPED"}),
    )
    assert {"c"} == topic.connectors().keys()

    topic.apply(*connector_entry("d", {}))
    assert StoredConnector(name="d", config={}, target_state="STOPPED") == topic.connector("d")


def test_a_commit_without_its_connector_is_passed_over() -> None:
    """What is left of a deleted connector does not come back with another of its name (KAFKA-16838)."""
    topic = topic_of(
        ("task-c-0", properties(x="old")),
        ("commit-c", {"tasks": 1}),
        ("connector-c", properties()),
        ("commit-c", {"tasks": 1}),
    )

    assert (True, ()) == (topic.records("c").is_inconsistent, topic.records("c").tasks)


def test_a_deleted_connector_leaves_its_task_count() -> None:
    """And nothing else, so that what its slots left is fenced."""
    topic = topic_of(
        ("connector-c", properties()),
        ("target-state-c", {"state": "PAUSED"}),
        ("task-c-0", properties()),
        ("commit-c", {"tasks": 1}),
        ("tasks-fencing-c", {"task-count": 1}),
        ("connector-c", None),
        ("target-state-c", None),
    )

    assert topic.connector("c") is None
    assert () == topic.records("c").tasks
    assert TaskCount(slots=1) == topic.records("c").count
    topic.apply(b"connector-c", b'{"properties":{}}')
    assert StoredConnector(name="c", config={}) == topic.connector("c")


def test_each_configuration_has_a_number_of_its_own() -> None:
    """Also one that is the same as before, and one of a connector that was deleted meanwhile."""
    topic, numbers = ConfigTopic(), list[int]()
    for value in (properties(a="1"), properties(a="1"), None, properties(a="1")):
        content = None if value is None else json.dumps(value).encode()
        topic.apply(b"connector-m", content)
        numbers.append(topic.records("m").start_number)
    topic.apply(*target_state_entry("m", "PAUSED"))

    assert [1, 2, 0, 3] == numbers
    assert 3 == topic.records("m").start_number


def test_a_connector_may_have_hyphens_in_its_name() -> None:
    """The number of a task is what follows the last one."""
    topic = topic_of(
        ("connector-a-1", properties()),
        ("task-a-1-0", properties(x="0")),
        ("commit-a-1", {"tasks": 1}),
    )

    assert ({"x": "0"},) == topic.records("a-1").tasks


@pytest.mark.parametrize(
    ("key", "value", "said"),
    [
        (None, b"{}", "it has no key"),
        (b"\xff", b"{}", "its key is not UTF-8"),
        (b"other-c", b"{}", "its key 'other-c' is not known"),
        (b"session-keys", b"{}", "its key 'session-keys' is not known"),
        (b"connector-c", b"{", "its value is not JSON"),
        (b"connector-c", b"[" * 100_000, "its value is not JSON"),
        (b"connector-c", b"[]", "its value is no JSON object"),
        (b"connector-c", b"{}", "it has no properties"),
        (b"connector-c", b'{"properties":{"a":1}}', "its property 'a' is no string"),
        (b"target-state-c", b'{"state":"GONE"}', "its state 'GONE' is not known"),
        (b"target-state-c", b'{"state.v2":[]}', r"its state \[\] is not known"),
        (b"task-c", b'{"properties":{}}', "does not end with the number of a task: 'c'"),
        (b"task-c-x", b'{"properties":{}}', "does not end with the number of a task: 'c-x'"),
        (b"commit-c", b'{"tasks":"1"}', "its 'tasks' is no number of tasks"),
        (b"commit-c", b'{"tasks":true}', "its 'tasks' is no number of tasks"),
        (b"tasks-fencing-c", b'{"task-count":-1}', "its 'task-count' is no number of tasks"),
    ],
)
def test_what_cannot_be_read_changes_nothing(key: bytes | None, value: bytes, said: str) -> None:
    """The error says what is wrong with the record."""
    topic = topic_of(("connector-c", properties(a="1")))
    before = topic.records("c")
    with pytest.raises(UnreadableRecordError, match=said):
        topic.apply(key, value)

    assert before == topic.records("c")
    assert {"c"} == topic.connectors().keys()


@pytest.mark.parametrize("key", ["restart-connector-c", "logger-cluster-org.x"])
def test_requests_to_running_workers_are_no_configuration(key: str) -> None:
    """They are passed over without an error."""
    assert {} == topic_of((key, {"level": "DEBUG"})).connectors()


def test_levels_of_loggers_are_told_from_when_someone_wants_them() -> None:
    """The record is Kafka Connect's; what was read before was for others."""
    topic, told = ConfigTopic(), list[tuple[str, str]]()
    entry = logger_entry("org.apache", "DEBUG")
    topic.apply(*entry)

    def note(logger: str, level: str) -> None:
        told.append((logger, level))

    topic.on_level = note
    topic.apply(*logger_entry("a-b", "trace"))
    topic.apply(*entry)

    assert (b"logger-cluster-org.apache", b'{"level":"DEBUG"}') == entry
    assert [("a-b", "trace"), ("org.apache", "DEBUG")] == told


@pytest.mark.parametrize(
    ("key", "value", "said"),
    [
        (b"logger-cluster-", b'{"level":"INFO"}', "it has no logger, or no level"),
        (b"logger-cluster-x", b'{"level":5}', "it has no logger, or no level"),
        (b"logger-cluster-x", b"{}", "it has no logger, or no level"),
        (b"logger-cluster-x", None, "it has no logger, or no level"),
        (b"logger-cluster-x", b'{"level":"LOUD"}', "its level 'LOUD' is not known"),
    ],
)
def test_what_is_no_level_is_passed_over(key: bytes, value: bytes | None, said: str) -> None:
    """The loggers of this process stay as they are."""
    root = logging.RootLogger(logging.INFO)
    root.manager = logging.Manager(root)
    topic = ConfigTopic(on_level=Levels(root).change)
    with pytest.raises(UnreadableRecordError, match=said):
        topic.apply(key, value)

    assert logging.INFO == root.level


def test_the_session_key_is_kafka_connects() -> None:
    """Byte for byte, and in no representation of what was read."""
    key = SessionKey(key=bytes(range(32)), algorithm="HmacSHA256", created_ms=1_698_200_000_000)
    topic = ConfigTopic()
    assert topic.session_key is None

    entry = session_key_entry(key)
    encoded = b"AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="
    rest = b'"algorithm":"HmacSHA256","creation-timestamp":1698200000000}'
    assert (b"session-key", b'{"key":"' + encoded + b'",' + rest) == entry
    topic.apply(*entry)
    assert key == topic.session_key
    assert {} == topic.connectors()
    assert "\\x00" not in repr(topic)
    assert "AAEC" not in repr(topic)


@given(
    key=st.binary(min_size=1),
    algorithm=st.text(st.characters(exclude_categories=["Cs"])),
    created_ms=st.integers(min_value=-(2**63), max_value=2**63 - 1),
)
def test_a_session_key_that_was_written_is_read(
    key: bytes, algorithm: str, created_ms: int
) -> None:
    """The last one counts."""
    written = SessionKey(key=key, algorithm=algorithm, created_ms=created_ms)
    topic = ConfigTopic()
    for each in (SessionKey(key=b"k", algorithm="A", created_ms=0), written):
        topic.apply(*session_key_entry(each))

    assert written == topic.session_key


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (None, "it has no key"),
        ({"algorithm": "A", "creation-timestamp": 1}, "it has no key, or no algorithm"),
        ({"key": "canary", "creation-timestamp": 1}, "it has no key, or no algorithm"),
        ({"key": "canary", "algorithm": "A"}, "its creation-timestamp is no number"),
        (
            {"key": "canary", "algorithm": "A", "creation-timestamp": "1"},
            "its creation-timestamp is no number",
        ),
        ({"key": "canary", "algorithm": "A", "creation-timestamp": 1}, "its key is empty, or not"),
        ({"key": "", "algorithm": "A", "creation-timestamp": 1}, "its key is empty, or not base64"),
    ],
)
def test_a_session_key_that_cannot_be_read_leaves_the_one_before(value: object, said: str) -> None:
    """The error does not show the secret."""
    before = SessionKey(key=b"k", algorithm="A", created_ms=0)
    topic = ConfigTopic()
    topic.apply(*session_key_entry(before))
    with pytest.raises(UnreadableRecordError, match=said) as caught:
        topic.apply(b"session-key", None if value is None else json.dumps(value).encode())

    assert before == topic.session_key
    assert "canary" not in str(caught.value)


TEXT = st.text(st.characters(exclude_categories=["Cs"]))


@given(
    name=TEXT,
    config=st.dictionaries(TEXT, st.none() | TEXT),
    state=st.sampled_from(["RUNNING", "PAUSED", "STOPPED"]),
    tasks=st.lists(st.dictionaries(TEXT, TEXT), max_size=4),
)
def test_what_was_written_is_read(
    name: str, config: dict[str, str | None], state: str, tasks: list[dict[str, str]]
) -> None:
    """Whatever a connector is called, and whatever its settings are."""
    topic = ConfigTopic()
    for entry in (
        target_state_entry(name, state),
        connector_entry(name, config),
        *task_entries(name, tasks),
    ):
        topic.apply(*entry)

    assert {
        name: StoredConnector(name=name, config=config, target_state=state)
    } == topic.connectors()
    assert tuple(tasks) == topic.records(name).tasks


CONFIG = {
    "name": "connector",
    "connector.class": "org.apache.kafka.connect.file.FileStreamSourceConnector",
    "value.converter": "org.apache.kafka.connect.json.JsonConverter",
    **{f"transforms.one.setting.{number}": "a value of some length" for number in range(12)},
}


def test_connectors_take_little_memory() -> None:
    """Names and values that thousands of records have in common are kept once: 120 MiB for 10,000 connectors at most."""
    count = 200
    made = [
        entry
        for number in range(count)
        for entry in (
            target_state_entry(f"c{number}", "RUNNING"),
            connector_entry(f"c{number}", CONFIG | {"file": f"/data/{number}"}),
            *task_entries(f"c{number}", [CONFIG | {"task": f"{each}"} for each in range(4)]),
            task_count_entry(f"c{number}", TaskCount(slots=4)),
        )
    ]
    topic = ConfigTopic()
    tracemalloc.start()
    for entry in made:
        topic.apply(*entry)
    taken, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert count == len(topic.connectors())
    assert taken / count < 6 * 1024


def test_many_tasks_of_one_connector_are_read_in_linear_time() -> None:
    """Those of a set that is not in force yet are not copied for each of them."""
    seconds = dict[int, float]()
    for count in (2_000, 40_000):
        made = [
            connector_entry("c", {}),
            *task_entries("c", [{"x": str(each)} for each in range(count)]),
        ]
        topic, began = ConfigTopic(), time.process_time()
        for entry in made:
            topic.apply(*entry)
        seconds[count] = time.process_time() - began
        assert count == len(topic.records("c").tasks)

    # Twenty times as many; copied, they would take four hundred times as long.
    assert seconds[40_000] < 80 * seconds[2_000]
