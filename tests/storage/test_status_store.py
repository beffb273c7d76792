"""What the store of statuses writes to its topic, and when, with a topic that may refuse it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace

import pytest

from doubles.written_topics import WrittenTopics
from headrace.connect.errors import ConnectError, RetriableError, TaskFailedError
from headrace.storage import kafka
from headrace.storage.kafka import KafkaStatusStore
from headrace.storage.protocols import Status
from headrace.storage.status_topic import StatusTopic, status_entry
from waiting import until

RUNNING = Status(state="RUNNING", worker_id="me:8083", generation=3)
ELSEWHERE = replace(RUNNING, worker_id="other:8083")


@pytest.fixture
def topics(monkeypatch: pytest.MonkeyPatch) -> WrittenTopics:
    """An empty topic; what it refuses is tried again at once."""
    monkeypatch.setattr(kafka, "_RETRY_SECONDS", 0.01)
    return WrittenTopics()


@pytest.fixture
def store(topics: WrittenTopics) -> Iterator[KafkaStatusStore]:
    """A store on that topic, without a group."""
    found = StatusTopic()
    topics.follow("t", found.apply)
    with closing(KafkaStatusStore(topics.shared(), "t", found, None)) as store:
        yield store


def put(store: KafkaStatusStore, task: int | None, status: Status) -> None:
    """Put a status of the connector, and wait until it is written."""
    store.put("c", task, status)
    assert store.flush(10)


@pytest.mark.parametrize("task", [None, 0])
def test_a_status_is_written_as_kafka_connect_writes_it(
    store: KafkaStatusStore, topics: WrittenTopics, task: int | None
) -> None:
    """Of a connector, and of a task; who has put it is told so from then on."""
    store.put("c", task, RUNNING)
    assert {task: RUNNING} == store.statuses("c")
    assert store.flush(10)

    assert [status_entry("c", task, RUNNING)] == topics.written
    assert {task: RUNNING} == store.statuses("c")


@pytest.mark.parametrize(
    "refusal",
    [RetriableError("The broker is slow."), TaskFailedError("The broker says no.")],
    ids=["retriable", "final"],
)
def test_a_status_that_kafka_refuses_is_written_later(
    store: KafkaStatusStore, topics: WrittenTopics, refusal: ConnectError
) -> None:
    """Who puts it is not troubled with that; meanwhile the store says what is wrong."""
    topics.refusals += [refusal] * 100
    store.put("c", None, RUNNING)
    until(lambda: store.failure is refusal)
    assert not topics.written
    topics.refusals.clear()
    assert store.flush(10)

    assert [status_entry("c", None, RUNNING)] == topics.written
    assert store.failure is None


def test_what_no_one_has_foreseen_does_not_end_the_writing(
    store: KafkaStatusStore, topics: WrittenTopics
) -> None:
    """The store says it, as what Kafka refuses, and tries again: statuses that are never written would look like those of idle tasks."""
    topics.refusals += [ValueError("It is odd.")] * 100
    store.put("c", None, RUNNING)
    until(lambda: store.failure)
    assert "Statuses cannot be written: ValueError('It is odd.')" == str(store.failure)
    assert isinstance(store.failure, TaskFailedError)
    topics.refusals.clear()
    assert store.flush(10)

    assert [status_entry("c", None, RUNNING)] == topics.written
    assert store.failure is None


def test_of_statuses_that_wait_the_last_one_is_written(
    store: KafkaStatusStore, topics: WrittenTopics
) -> None:
    """Those before it are no longer true."""
    topics.refusals += [RetriableError("The broker is slow.")] * 100
    store.put("c", 0, RUNNING)
    until(lambda: store.failure)
    paused = replace(RUNNING, state="PAUSED")
    store.put("c", 0, paused)
    topics.refusals.clear()
    assert store.flush(10)

    assert [status_entry("c", 0, paused)] == topics.written


@pytest.mark.parametrize("task", [None, 0])
@pytest.mark.parametrize("state", ["UNASSIGNED", "FAILED"])
@pytest.mark.parametrize(
    ("before", "is_written"),
    [
        (None, True),
        (replace(RUNNING, generation=9), True),
        (replace(ELSEWHERE, generation=2), True),
        (replace(ELSEWHERE, generation=4), False),
    ],
    ids=["no status", "its own", "an earlier owner's", "a later owner's"],
)
def test_an_end_does_not_hide_what_a_later_owner_does(
    store: KafkaStatusStore,
    topics: WrittenTopics,
    *,
    before: Status | None,
    is_written: bool,
    state: str,
    task: int | None,
) -> None:
    """Neither of a connector nor of a task; any other status of a worker is what it knows best."""
    if before is not None:
        topics.arrives("t", status_entry("c", task, before))
    after = replace(RUNNING, state=state)
    expected = {task: after if is_written else before}
    store.put("c", task, after)
    assert expected == store.statuses("c")
    assert store.flush(10)

    assert expected == store.statuses("c")
    assert ([status_entry("c", task, after)] if is_written else []) == topics.written


def test_who_runs_a_connector_says_so_whatever_was_said_before(
    store: KafkaStatusStore, topics: WrittenTopics
) -> None:
    """A later generation of another worker is no reason to be silent: brokers may have begun to count anew."""
    topics.arrives("t", status_entry("c", None, replace(ELSEWHERE, generation=9)))
    put(store, None, RUNNING)

    assert {None: RUNNING} == store.statuses("c")


@pytest.mark.parametrize("state", ["STOPPED", "UNASSIGNED"])
@pytest.mark.parametrize("task", [None, 0])
def test_who_was_frozen_says_nothing_of_what_a_later_owner_has(
    topics: WrittenTopics, state: str, task: int | None
) -> None:
    """It has read already what that one wrote, but not yet learned that the group has gone on, and sees the connector's new state first."""
    found, generation = StatusTopic(), [3]
    topics.follow("t", found.apply)
    later = replace(ELSEWHERE, state="STOPPED", generation=4)
    with closing(
        KafkaStatusStore(
            topics.shared(), "t", found, lambda: generation.pop() if generation else None
        )
    ) as store:
        put(store, task, RUNNING)
        topics.arrives("t", status_entry("c", task, later))
        put(store, task, replace(RUNNING, state=state))
        assert {task: later} == store.statuses("c")
    assert [status_entry("c", task, RUNNING)] == topics.written


def test_who_may_have_been_replaced_and_was_not_says_what_has_happened(
    topics: WrittenTopics,
) -> None:
    """As after an outage of the brokers."""
    found, generation = StatusTopic(), [3]
    topics.follow("t", found.apply)
    with closing(
        KafkaStatusStore(
            topics.shared(), "t", found, lambda: generation.pop() if generation else None
        )
    ) as store:
        put(store, None, RUNNING)
        put(store, None, replace(RUNNING, state="STOPPED"))
        assert "STOPPED" == store.statuses("c")[None].state


def test_an_end_that_waits_is_not_written_over_a_later_owners_start(
    store: KafkaStatusStore, topics: WrittenTopics
) -> None:
    """It was put before that, and its topic did not take it."""
    topics.refusals += [RetriableError("The broker is slow.")] * 100
    store.put("c", 0, replace(RUNNING, state="UNASSIGNED"))
    until(lambda: store.failure)
    later = replace(ELSEWHERE, generation=4)
    topics.arrives("t", status_entry("c", 0, later))
    topics.refusals.clear()
    assert store.flush(10)

    assert {0: later} == store.statuses("c")
    assert not topics.written


def test_a_connector_is_forgotten_with_its_tasks(
    store: KafkaStatusStore, topics: WrittenTopics
) -> None:
    """By a record without a value for each; or only tasks that are no more."""
    for task in (None, 0, 1, 2):
        put(store, task, RUNNING)
    store.forget("c", from_task=1)
    assert store.flush(10)
    assert {None, 0} == store.statuses("c").keys()
    assert {status_entry("c", task, None) for task in (1, 2)} == set(topics.written[4:])

    store.forget("c")
    assert [] == store.connectors()
    assert store.flush(10)
    assert {status_entry("c", task, None) for task in (None, 0)} == set(topics.written[6:])
    assert {} == store.statuses("c")


def test_what_another_worker_has_removed_is_not_removed_again(
    store: KafkaStatusStore, topics: WrittenTopics
) -> None:
    """That would remove what is written next, for a new connector of the name."""
    put(store, None, RUNNING)
    topics.refusals += [RetriableError("The broker is slow.")] * 1000
    store.forget("c")
    until(lambda: store.failure is not None)
    topics.arrives("t", status_entry("c", None, None))
    topics.refusals.clear()
    assert store.flush(10)

    assert [status_entry("c", None, RUNNING)] == topics.written
