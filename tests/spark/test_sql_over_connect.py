"""The same over Spark Connect, in a process of its own: another session may be open in this one."""

from __future__ import annotations

import pytest

from end_to_end.player import Player

pytestmark = [pytest.mark.spark, pytest.mark.timeout(300)]

EXPECTED = (
    ("where", "b > : [PARSE_SYNTAX_ERROR]"),
    ("select", "sum(a) AS s: This is an aggregate."),
    ("where", "a > 1 AND: Something is missing after AND"),
    ("select", "* EXCEPT (: [PARSE_SYNTAX_ERROR]"),
    ("select", "c: [UNRESOLVED_COLUMN.WITH_SUGGESTION]"),
    ("function", "spark.sql_functions:ordered: This is a sort."),
    ("function", "spark.sql_functions:counted: It runs Spark (count, collect, show …)"),
    ("function", "spark.sql_functions:raising: It raised KeyError"),
)


def test_a_step_does_and_tells_the_same_over_spark_connect(connected: Player) -> None:
    """Without a gateway to Java: expressions, functions, plans and sentences."""
    (said,) = connected.play("spark.sql_over_connect")

    kept = [None, None, {"c": 4, "t": "t"}]
    assert [kept, [{"a": 2, "twice": 4}, {"a": 3, "twice": 6}]] == said["left"]
    assert ["b"] == said["required"]
    problems = zip(said["problems"], EXPECTED, strict=True)
    assert [*EXPECTED] == [
        (name, sentence[: len(text)]) for (name, sentence), (_, text) in problems
    ]
