"""The same engine on a cluster and over Spark Connect, with parts of them killed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import cast

import pytest

from end_to_end.player import Player

pytestmark = [
    pytest.mark.broker,
    pytest.mark.kill,
    pytest.mark.spark,
    pytest.mark.timeout(400),
    pytest.mark.slow,
]

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


@pytest.mark.parametrize("sql", [False, True])
@pytest.mark.parametrize("seed", [2, 3])
@pytest.mark.sampled(1)
def test_over_spark_connect_killed_slots_lose_nothing_and_double_nothing(
    bootstrap: str, tmp_path: Path, connected: Player, seed: int, *, sql: bool
) -> None:
    """No SparkContext and no JVM gateway in the driver; with SQL, whichever of a slot's two processes it is."""
    where = {"bootstrap": bootstrap, "folder": str(tmp_path)}

    told = connected.play("end_to_end.rounds", **where, name=f"connect-{sql}", sql=sql, seed=seed)

    assert [{"wrong": ""}] == told


def test_a_slot_that_spark_attempts_again_writes_nothing_the_second_time(
    bootstrap: str, tmp_path: Path, retrying: Player
) -> None:
    """Whether the first attempt was killed or raised: the token is claimed, and the rest planned again."""
    where = {"bootstrap": bootstrap, "folder": str(tmp_path)}

    assert [
        {"attempt": "killed", "wrong": ""},
        {"attempt": "raised", "wrong": ""},
    ] == retrying.play("end_to_end.attempts", **where, name="attempt")


@pytest.mark.sampled(1)
@pytest.mark.parametrize("session", ["retrying", "cluster"])
def test_a_value_that_sql_cannot_take_fails_the_connector_where_spark_tries_tasks_again(
    bootstrap: str, tmp_path: Path, request: pytest.FixtureRequest, session: str
) -> None:
    """With Spark's own message, as where it tries once; a killed reader's work is planned again."""
    player = cast("Player", request.getfixturevalue(session))
    where = {"bootstrap": bootstrap, "folder": str(tmp_path)}

    assert [
        {"attempt": "killed", "wrong": ""},
        {"attempt": "failed", "wrong": ""},
    ] == player.play("end_to_end.attempts_sql", **where, name=f"attempt-sql-{session}")


@pytest.mark.slow
def test_a_connect_session_that_is_lost_between_micro_batches_is_opened_again(
    bootstrap: str, tmp_path: Path
) -> None:
    """Closed by the server first, then gone with the server, which is started again."""
    asked = {"bootstrap": bootstrap, "folder": str(tmp_path), "name": "connect-lost"}

    assert [{"wrong": ""}] == played("lost_connect", asked)
