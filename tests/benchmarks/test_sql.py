"""Both ways of the benchmark of Spark SQL request the same."""

from __future__ import annotations

import pytest
from benchmarks.rows import ROWS, chosen
from benchmarks.sql import AS_SQL, AS_TRANSFORMS, KEPT

from headrace.config.connector_config import stage_choices
from headrace.task.sql.step import SqlStep, sql_step
from plugins.judged import errors, validator

FILES = {"name": "c", "connector.class": "files", "topic": "t", "files.path": "/nowhere/a.csv"}


@pytest.mark.parametrize("settings", [AS_TRANSFORMS, AS_SQL], ids=["transformations", "sql"])
def test_connectors_of_the_benchmark_are_valid(settings: dict[str, str]) -> None:
    """So a run does not find it out."""
    assert {} == errors(validator().validate({**FILES, **settings}))


def test_spark_is_asked_for_the_same_fields() -> None:
    """And to leave out what has no value."""
    assert SqlStep(select=KEPT, where="value IS NOT NULL") == sql_step(stage_choices(AS_SQL))


def test_both_ways_can_be_chosen_together() -> None:
    """They are rows of the table."""
    found = {row.key for row in ROWS if row in chosen(["sql-*"])}

    assert {"sql-transforms-1", "sql-spark-1"} == found
