"""The same over Spark Connect, in a process of its own: another session may be open in this one."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from headrace.testing.spark_connect import ConnectServer

pytestmark = [pytest.mark.spark, pytest.mark.timeout(300)]

TESTS = Path(__file__).parents[1]
EXPECTED = (
    ("where", "b > : [PARSE_SYNTAX_ERROR]"),
    ("select", "sum(a) AS s: This is an aggregate."),
    ("where", "a > 1 AND: Something is missing behind AND"),
    ("select", "* EXCEPT (: [PARSE_SYNTAX_ERROR]"),
    ("select", "c: [UNRESOLVED_COLUMN.WITH_SUGGESTION]"),
    ("function", "spark.sql_functions:ordered: This is a sort."),
    ("function", "spark.sql_functions:counted: It runs Spark (count, collect, show …)"),
    ("function", "spark.sql_functions:raising: It raised KeyError"),
)


def test_a_step_does_and_tells_the_same_over_spark_connect(tmp_path: Path) -> None:
    """Without a gateway to Java: expressions, functions, plans and sentences."""
    path = os.pathsep.join([str(TESTS), os.environ.get("PYTHONPATH", "")])
    with ConnectServer(tmp_path) as server:
        done = subprocess.run(
            [sys.executable, "-m", "spark.sql_over_connect", server.url],
            env={**os.environ, "PYTHONPATH": path},
            capture_output=True,
            check=False,
            timeout=200,
        )
    assert 0 == done.returncode, done.stderr.decode()[-4000:]
    said = json.loads(done.stdout.splitlines()[-1])

    kept = [None, None, {"c": 4, "t": "t"}]
    assert [kept, [{"a": 2, "twice": 4}, {"a": 3, "twice": 6}]] == said["left"]
    assert ["b"] == said["required"]
    told = zip(said["told"], EXPECTED, strict=True)
    assert [*EXPECTED] == [(name, sentence[: len(text)]) for (name, sentence), (_, text) in told]
