"""Workers of a group are replaced, one after the other, by workers of another version while records flow."""

from __future__ import annotations

import os
import signal
import tarfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from doubles.spark_cluster import QUICK_JVM, SparkCluster
from end_to_end.dying import DyingWorker
from end_to_end.loaded_group import LoadedGroup, started
from end_to_end.test_other_version import OTHER, other_environment
from headrace import __version__
from project.durations import crowding

pytestmark = [
    pytest.mark.broker,
    pytest.mark.kill,
    pytest.mark.slow,
    pytest.mark.timeout(600),
]
# Where each program has the processor that it wants.
LATEST_SECONDS = 5.0


@pytest.fixture
def other(tmp_path: Path) -> Path:
    """A folder with the other version, and with a Python that finds it."""
    return other_environment(tmp_path / "other", lacks=None).parent


def upgrade(group: LoadedGroup, worker: DyingWorker, other: Path) -> None:
    """End a worker and start one of the other version, as an operator does; returns when that has its share."""
    worker.send(signal.SIGTERM)
    worker.environment = {
        "PYTHONPATH": os.pathsep.join([str(other), os.environ.get("PYTHONPATH", "")])
    }
    worker.start()
    group.until_divided(group.workers)
    group.until_moving()


def versions(group: LoadedGroup) -> list[str]:
    """Of the workers, as one of them says."""
    return sorted(each["version"] for each in group.workers[0].ask("GET", "/admin/workers").json())


@pytest.fixture
def group(bootstrap: str, tmp_path: Path) -> Iterator[LoadedGroup]:
    """Three workers, whose connectors would wait for minutes for one that is gone."""
    with started(bootstrap, tmp_path, {"headrace.slots": "8"}) as made:
        yield made


def test_a_rolling_upgrade_under_load_loses_nothing_and_keeps_no_record_waiting(
    group: LoadedGroup, other: Path
) -> None:
    """Both versions are one group; each record comes once, and none comes later than seconds after its line was written."""
    group.create(group.workers[0])
    with group.pouring():
        group.until_divided(group.workers)
        seen = [versions(group)]
        for each in group.workers:
            upgrade(group, each, other)
            seen.append(versions(group))
    for name, verdict in group.verdicts(group.workers[0]).items():
        assert verdict.exactly_once, f"{name}: {verdict}"
    assert [sorted([OTHER] * done + [__version__] * (3 - done)) for done in range(4)] == seen
    assert group.latest() < LATEST_SECONDS * crowding()


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[SparkCluster]:
    """One machine's worth, with cores for an executor of each worker."""
    folder = tmp_path / "cluster"
    folder.mkdir()
    with SparkCluster(folder, workers=1) as started:
        yield started


@pytest.fixture
def group_on_cluster(
    bootstrap: str, tmp_path: Path, cluster: SparkCluster
) -> Iterator[LoadedGroup]:
    """Two workers, each with an executor there."""
    settings = {
        "headrace.channel.security.protocol": "SSL",
        "headrace.slots": "2",
        "spark.master": cluster.url,
        "spark.cores.max": "2",
        "spark.executor.memory": "512m",
        "spark.executor.extraJavaOptions": QUICK_JVM,
    }
    names = ("a", "b")
    with started(bootstrap, tmp_path, settings, workers="xy", names=names, on_spark=True) as made:
        yield made


@pytest.mark.spark
def test_executors_have_the_environment_that_their_worker_sends(
    group_on_cluster: LoadedGroup, cluster: SparkCluster, other: Path, tmp_path: Path
) -> None:
    """A worker of another version brings its Python along with ``spark.archives``; the executors of the one before it keep theirs."""
    packed = tmp_path / "other.tar.gz"
    with tarfile.open(packed, "w:gz") as archive:
        archive.add(other, ".")
    group = group_on_cluster
    first, second = group.workers
    group.create(first)
    first.settings = {
        **first.settings,
        "spark.archives": f"{packed}#environment",
        "spark.pyspark.python": "./environment/python",
    }
    with group.pouring():
        group.until_divided(group.workers)
        upgrade(group, first, other)
        assert sorted([OTHER, __version__]) == versions(group)
    for name, verdict in group.verdicts(second).items():
        assert verdict.exactly_once, f"{name}: {verdict}"
    assert "but this worker has" not in first.told() + second.told()
    unpacked = [work for pid in cluster.executors() for work in _environments(pid)]
    assert unpacked == [OTHER]


def _environments(executor: int) -> list[str]:
    """Which versions were unpacked where an executor works."""
    return [
        each.read_text().split('__version__ = "')[1].split('"')[0]
        for each in Path(f"/proc/{executor}/cwd/environment/headrace").glob("__init__.py")
    ]
