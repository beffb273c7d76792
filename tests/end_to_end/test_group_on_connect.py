"""Workers of one group that share a Spark Connect server: tasks, a worker and the server are killed while records flow."""

from __future__ import annotations

import operator
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from doubles.spark_connect import ConnectServer
from end_to_end.loaded_group import LoadedGroup, started
from end_to_end.process_tree import command
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
def server(tmp_path: Path) -> ConnectServer:
    """One that is not started yet, with room for the slots of both workers."""
    return ConnectServer(tmp_path)


@pytest.fixture
def group(bootstrap: str, tmp_path: Path, server: ConnectServer) -> Iterator[LoadedGroup]:
    """Two workers, which have no JVM of their own."""
    settings = {
        "scheduled.rebalance.max.delay.ms": "1000",
        "headrace.slots": "2",
        "headrace.channel.security.protocol": "SSL",
        "spark.remote": server.url,
    }
    names = ("a", "b", "c", "d")
    with (
        server,
        started(bootstrap, tmp_path, settings, workers="xy", names=names, on_spark=True) as made,
    ):
        yield made


def losses(group: LoadedGroup) -> list[int]:
    """How often each worker has planned lost work again since its start."""
    return [each.told().count("The work is planned again") for each in group.workers]


def test_each_record_comes_once_when_tasks_a_worker_and_the_server_are_killed(
    group: LoadedGroup, server: ConnectServer
) -> None:
    """A task's work is planned again, a worker's connectors go on at the other one; without the server nothing is sent until it is back."""
    first, second = group.workers
    group.create(second)
    group.until_divided(group.workers)

    group.write(LINES)
    group.until_moving()
    os.kill(server.tasks()[0], signal.SIGKILL)
    until(lambda: any(losses(group)), seconds=60)

    group.write(LINES)
    group.until_moving()
    first.send(signal.SIGKILL)
    group.until_divided([second])
    first.start()
    group.until_divided(group.workers)

    group.write(LINES)
    group.until_moving()
    tasks, lost = server.tasks(), losses(group)
    server.kill()
    assert group.all_committed(second) < group.written * len(group.names), "nothing was interrupted"
    until(lambda: not any(command(each) for each in tasks), seconds=60)
    before = group.all_committed(second)
    until(lambda: all(map(operator.gt, losses(group), lost)), seconds=120)
    assert before == group.all_committed(second)
    server.start()
    group.until_moving()

    for name, verdict in group.verdicts(second).items():
        assert verdict.exactly_once, f"{name}: {verdict}"
