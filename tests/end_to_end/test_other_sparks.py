"""The same engine on a cluster and over Spark Connect, with parts of them killed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from headrace.testing.spark_connect import ConnectServer

pytestmark = [pytest.mark.broker, pytest.mark.kill, pytest.mark.spark, pytest.mark.timeout(400)]

TESTS = Path(__file__).parent.parent


def played(program: str, asked: Mapping[str, object]) -> list[dict[str, object]]:
    """Run *program* of this folder in a process of its own; what it printed."""
    path = os.pathsep.join([str(TESTS), os.environ.get("PYTHONPATH", "")])
    done = subprocess.run(
        [sys.executable, "-m", f"end_to_end.{program}", json.dumps(asked)],
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        check=False,
    )
    assert 0 == done.returncode, done.stderr.decode()[-4000:]
    return [json.loads(line) for line in done.stdout.splitlines() if line.startswith(b"{")]


def all_right(count: int) -> list[dict[str, object]]:
    """What rounds print when nothing was lost and nothing doubled."""
    return [{"round": number, "wrong": ""} for number in range(count)]


def test_killed_executors_of_a_cluster_lose_nothing_and_double_nothing(
    bootstrap: str, tmp_path: Path
) -> None:
    """Spark starts another executor and may run a slot again; its token is claimed by then."""
    asked = {
        "bootstrap": bootstrap,
        "folder": str(tmp_path),
        "name": "executor-kill",
        "master": "local-cluster[2,2,1024]",
        "victim": "executor",
        "rounds": 3,
        "seed": 1,
    }

    assert all_right(3) == played("rounds", asked)


@pytest.fixture
def connect_server(tmp_path: Path) -> Iterator[ConnectServer]:
    """A Spark Connect server of the test's own."""
    with ConnectServer(tmp_path) as server:
        yield server


def test_over_spark_connect_killed_slots_lose_nothing_and_double_nothing(
    bootstrap: str, tmp_path: Path, connect_server: ConnectServer
) -> None:
    """No SparkContext and no JVM gateway in the driver."""
    asked = {
        "bootstrap": bootstrap,
        "folder": str(tmp_path),
        "name": "connect-kill",
        "remote": connect_server.url,
        "victim": "slot",
        "rounds": 2,
        "seed": 2,
    }

    assert all_right(2) == played("rounds", asked)


def test_over_spark_connect_killed_halves_of_slots_with_sql_lose_nothing_and_double_nothing(
    bootstrap: str, tmp_path: Path, connect_server: ConnectServer
) -> None:
    """Whichever of a slot's two processes it is."""
    asked = {
        "bootstrap": bootstrap,
        "folder": str(tmp_path),
        "name": "connect-sql",
        "remote": connect_server.url,
        "victim": "slot",
        "sql": True,
        "rounds": 2,
        "seed": 3,
    }

    assert all_right(2) == played("rounds", asked)


def test_a_slot_that_spark_attempts_again_writes_nothing_the_second_time(
    bootstrap: str, tmp_path: Path
) -> None:
    """Whether the first attempt was killed or raised: the token is claimed, and the rest planned again."""
    asked = {"bootstrap": bootstrap, "folder": str(tmp_path), "name": "attempt"}

    assert [
        {"attempt": "killed", "wrong": ""},
        {"attempt": "raised", "wrong": ""},
    ] == played("attempts", asked)


@pytest.mark.parametrize("master", ["local[2,2]", "local-cluster[2,2,1024]"])
def test_a_value_that_sql_cannot_take_fails_the_connector_where_spark_tries_tasks_again(
    bootstrap: str, tmp_path: Path, master: str
) -> None:
    """With Spark's own message, as where it tries once; a killed reader's work is planned again."""
    folder = str(tmp_path)
    asked = {"bootstrap": bootstrap, "folder": folder, "name": "attempt-sql", "master": master}

    assert [
        {"attempt": "killed", "wrong": ""},
        {"attempt": "failed", "wrong": ""},
    ] == played("attempts_sql", asked)


def test_a_connect_session_that_is_lost_between_micro_batches_is_opened_anew(
    bootstrap: str, tmp_path: Path
) -> None:
    """Closed by the server first, then gone with the server, which is started again."""
    asked = {"bootstrap": bootstrap, "folder": str(tmp_path), "name": "connect-lost"}

    assert [{"wrong": ""}] == played("lost_connect", asked)
