"""Metrics in the form that Prometheus reads."""

from __future__ import annotations

from collections import Counter
from math import inf

import pytest
from prometheus_client import REGISTRY
from prometheus_client.parser import text_string_to_metric_families

from headrace.observe.counts import Counts
from headrace.observe.events import (
    Amounts,
    ConnectorFailed,
    ConnectorStarted,
    MicroBatchStarted,
    Rebalanced,
    Rebalancing,
    SlotProgress,
    TaskCounts,
)
from headrace.observe.metrics import (
    OF_CONNECTOR,
    OF_GROUP,
    OF_TASK,
    OF_WORKER,
    ConnectorSnapshot,
    Metrics,
)

COUNTS = TaskCounts(
    task=0,
    polled_records=9,
    committed_records=6,
    dead_lettered=1,
    skipped=1,
    record_errors=4,
    retries=7,
    errors_logged=2,
    dead_letters_failed=1,
    copied_batches=Counter({"forwarded": 5, "too large": 2}),
    copied_bytes=Counter({"forwarded": 500, "too large": 70}),
    polls=Amounts(count=2, total=0.5, least=0.1, most=0.4),
    batches=Amounts(count=2, total=9, least=4, most=5),
    commits=Amounts(count=4, total=1.0, least=0.1, most=0.7),
    transaction_sizes=Amounts(count=3, total=6, least=1, most=3),
)
SNAPSHOT = ConnectorSnapshot(
    name='c"\n\\',
    type="source",
    class_name="files",
    state="RUNNING",
    version="1",
    tasks={0: "RUNNING", 1: "FAILED"},
)
Sample = tuple[str, frozenset[tuple[str, str]]]


def measured() -> Metrics:
    """The metrics of a worker with one connector that runs."""
    counts = Counts(clock=lambda: 3.0, monotonic=lambda: 5.0)
    for seconds in (0.5, 1.5):
        counts(
            Rebalanced(generation=7, leader="http://a:1/", protocol="sessioned", seconds=seconds)
        )
    counts(Rebalancing())
    counts(ConnectorFailed(connector="c", reason="x"))
    counts(ConnectorStarted(connector=SNAPSHOT.name))
    counts(MicroBatchStarted(connector=SNAPSHOT.name, slots=1))
    counts(
        SlotProgress(
            connector=SNAPSHOT.name,
            records=0,
            bytes=0,
            committed_records=0,
            committed_bytes=0,
            tasks=(COUNTS,),
        )
    )
    return Metrics(counts, lambda: [SNAPSHOT])


def samples(text: str) -> dict[Sample, float]:
    """Every sample of *text*, by its name and labels."""
    return {
        (each.name.removeprefix("kafka_connect_"), frozenset(each.labels.items())): each.value
        for family in text_string_to_metric_families(text)
        for each in family.samples
    }


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("connector_count", 1),
        ("task_count", 2),
        ("connector_startup_attempts_total", 2),
        ("connector_startup_success_total", 1),
        ("connector_startup_success_percentage", 0.5),
        ("connector_startup_failure_total", 1),
        ("connector_startup_failure_percentage", 0.5),
    ],
)
def test_the_worker_is_reported_without_labels(name: str, value: float):
    """Of all its connectors together."""
    found = samples(measured().text())

    assert value == found[f"connect_worker_metrics_{name}", frozenset()]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("epoch", 7),
        ("completed_rebalances_total", 2),
        ("rebalancing", 1),
        ("rebalance_max_time_ms", 1500),
        ("rebalance_avg_time_ms", 1000),
        ("time_since_last_rebalance_ms", 0),
    ],
)
def test_the_group_is_reported_without_labels(name: str, value: float):
    """As far as this worker has taken part; its leader and protocol are words."""
    found = samples(measured().text())
    group = "connect_worker_rebalance_metrics"
    leader = frozenset({("leader_name", "http://a:1/")})

    assert value == found[f"{group}_{name}", frozenset()]
    assert 1 == found[f"{group}_leader_name", leader]
    assert 1 == found[f"{group}_connect_protocol", frozenset({("connect_protocol", "sessioned")})]


def test_before_the_first_rebalance_only_that_is_known():
    """A worker that joins; one without a group reports nothing of it."""
    joins = Counts()
    joins(Rebalancing())
    found = samples(Metrics(joins, list).text())
    group = "connect_worker_rebalance_metrics"

    assert {
        "rebalancing": 1,
        "completed_rebalances_total": 0,
        "time_since_last_rebalance_ms": inf,
    } == {
        name.removeprefix(f"{group}_"): value for (name, _), value in found.items() if group in name
    }
    assert group not in Metrics(Counts(), list).text()


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("connector_task_metrics_offset_commit_max_time_ms", 700),
        ("connector_task_metrics_offset_commit_avg_time_ms", 250),
        ("connector_task_metrics_batch_size_max", 5),
        ("connector_task_metrics_batch_size_avg", 4.5),
        ("source_task_metrics_source_record_poll_total", 9),
        ("source_task_metrics_source_record_write_total", 6),
        ("source_task_metrics_source_record_active_count", 1),
        ("source_task_metrics_poll_batch_max_time_ms", 400),
        ("source_task_metrics_poll_batch_avg_time_ms", 250),
        ("source_task_metrics_transaction_size_min", 1),
        ("source_task_metrics_transaction_size_max", 3),
        ("source_task_metrics_transaction_size_avg", 2),
        ("task_error_metrics_total_record_failures", 11),
        ("task_error_metrics_total_record_errors", 4),
        ("task_error_metrics_total_records_skipped", 2),
        ("task_error_metrics_total_retries", 7),
        ("task_error_metrics_total_errors_logged", 2),
        ("task_error_metrics_deadletterqueue_produce_failures", 1),
        ("task_error_metrics_deadletterqueue_produce_requests", 1),
        ("task_error_metrics_last_error_timestamp", 3000),
    ],
)
def test_a_task_is_reported_by_its_connector_and_number(name: str, value: float):
    """A name is escaped; a task that has done nothing has no such sample."""
    found = samples(measured().text())
    labels = {"connector": SNAPSHOT.name}

    assert value == found[name, frozenset({**labels, "task": "0"}.items())]
    assert (name, frozenset({**labels, "task": "1"}.items())) not in found


def test_words_are_labels():
    """Of metrics that are always 1, in lower case where they are states."""
    found = samples(measured().text())
    connector = {"connector": SNAPSHOT.name}
    words = {
        ("connector_metrics_status", "status", "running"),
        ("connector_metrics_connector_type", "connector_type", "source"),
        ("connector_metrics_connector_class", "connector_class", "files"),
        ("connector_metrics_connector_version", "connector_version", "1"),
    }
    tasks = {("0", "running"), ("1", "failed")}

    assert {1} == {
        found[name, frozenset({**connector, key: word}.items())] for name, key, word in words
    }
    for task, state in tasks:
        labels = {**connector, "task": task, "status": state}
        assert 1 == found["connector_task_metrics_status", frozenset(labels.items())]


def test_copied_batches_are_told_by_the_way_that_they_went():
    """Each way is a label."""
    found = samples(measured().text())
    name = "source_task_metrics_source_batch_copied"

    for way, batches, nbytes in (("forwarded", 5, 500), ("too large", 2, 70)):
        labels = frozenset({"connector": SNAPSHOT.name, "task": "0", "way": way}.items())
        assert batches == found[f"{name}_total", labels]
        assert nbytes == found[f"{name}_bytes_total", labels]


def test_tasks_are_counted_by_their_state():
    """All of them, and none where there is none."""
    found = samples(measured().text())
    labels = frozenset({"connector": SNAPSHOT.name}.items())
    numbers = {
        state: found[f"connect_worker_metrics_connector_{state}_task_count", labels]
        for state in ("total", "running", "failed", "paused", "restarting", "destroyed")
    }

    assert {
        "total": 2,
        "running": 1,
        "failed": 1,
        "paused": 0,
        "restarting": 0,
        "destroyed": 0,
    } == numbers


def test_every_metric_of_the_tables_can_be_collected():
    """Each under its own name."""
    names = [each.name for table in (OF_WORKER, OF_GROUP, OF_CONNECTOR, OF_TASK) for each in table]
    text = measured().text()

    assert sorted(set(names)) == sorted(names)
    assert [] == [name for name in names if f"\n{name}{{" not in text and f"\n{name} " not in text]


def test_only_what_ends_so_is_a_counter():
    """Prometheus would give another name to the rest."""
    text = measured().text()

    assert "# TYPE kafka_connect_source_task_metrics_source_record_poll_total counter" in text
    assert "# TYPE kafka_connect_task_error_metrics_total_records_skipped untyped" in text


def test_workers_in_one_process_share_nothing():
    """And nothing is added to the registry of the process."""
    before = list(REGISTRY.collect())
    full, empty = measured(), Metrics(Counts(), list)

    full.text()

    assert samples(empty.text())["connect_worker_metrics_connector_count", frozenset()] == 0
    assert "connector=" not in empty.text()
    assert [each.name for each in before] == [each.name for each in REGISTRY.collect()]
