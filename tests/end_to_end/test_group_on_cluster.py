"""Workers of one group whose tasks run on one Spark cluster: executors and workers are killed while records flow."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from uuid import uuid4

import pytest

from doubles.spark_cluster import QUICK_JVM, SparkCluster
from end_to_end.dying import DyingWorker
from end_to_end.loaded_group import LoadedGroup
from end_to_end.process_tree import is_connected, tasks_of
from waiting import until

pytestmark = [
    pytest.mark.broker,
    pytest.mark.kill,
    pytest.mark.slow,
    pytest.mark.spark,
    pytest.mark.timeout(900),
]
LINES = 2_000


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[SparkCluster]:
    """Two machines' worth, each with cores for one executor of each worker."""
    folder = tmp_path / "cluster"
    folder.mkdir()
    with SparkCluster(folder) as started:
        yield started


@pytest.fixture
def group(bootstrap: str, tmp_path: Path, cluster: SparkCluster) -> Iterator[LoadedGroup]:
    """Two workers, each with two executors on the cluster, which they talk to over TLS as between machines."""
    settings = {
        "scheduled.rebalance.max.delay.ms": "1000",
        "headrace.slots": "4",
        "headrace.channel.security.protocol": "SSL",
        "spark.master": cluster.url,
        "spark.cores.max": "4",
        "spark.executor.cores": "2",
        "spark.executor.memory": "512m",
        "spark.executor.extraJavaOptions": QUICK_JVM,
    }
    name = f"cluster-{uuid4().hex[:8]}"
    with ExitStack() as opened:
        made = [
            DyingWorker(
                bootstrap, tmp_path / each, name, command="worker", settings=settings, on_spark=True
            )
            for each in "xy"
        ]
        for each in made:
            opened.callback(each.end)
            each.start()
        yield LoadedGroup(made, tmp_path, names=("a", "b", "c", "d"))


def sending(cluster: SparkCluster, bootstrap: str) -> list[int]:
    """The executors of which a Python process is connected to the broker; others may be kept by Spark without work."""
    port = int(bootstrap.rpartition(":")[2])
    return [
        pid
        for pid in cluster.executors()
        if any(is_connected(each, port) for each in tasks_of(pid))
    ]


def test_each_record_comes_once_when_an_executor_and_a_worker_are_killed(
    group: LoadedGroup, cluster: SparkCluster
) -> None:
    """An executor's slots are planned again on others, a worker's connectors go on at the other worker."""
    first, second = group.workers
    group.create(second)
    group.until_divided(group.workers)
    assert 4 == len(cluster.executors())

    group.write(LINES)
    group.until_moving()
    os.kill(sending(cluster, first.bootstrap)[0], signal.SIGKILL)
    until(lambda: "The work is planned again" in first.told() + second.told(), seconds=60)
    assert group.all_committed(second) < LINES * len(group.names), "nothing was interrupted"
    group.until_moving()

    group.write(LINES)
    group.until_moving()
    first.send(signal.SIGKILL)
    assert group.all_committed(second) < group.written * len(group.names), "nothing was interrupted"
    group.until_divided([second])
    first.start()
    group.until_divided(group.workers)
    group.write(LINES)

    for name, verdict in group.verdicts(second).items():
        assert verdict.exactly_once, f"{name}: {verdict}"
    until(lambda: 4 == len(cluster.executors()), seconds=60)
