"""The examples of the page about Spark SQL do what it says."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pyarrow as pa
import pytest

from headrace.config.connector_config import stage_choices
from headrace.spark.engine import SparkEngine
from headrace.spark.job import applied
from headrace.task.sql.step import SqlStep, sql_step
from plugins.judged import errors, validator
from spark.sql_frames import frame, left_of, row

PAGE = (Path(__file__).parents[2] / "docs" / "spark-sql.md").read_text()
BLOCKS = map(json.loads, re.findall(r"```json\n(.*?)```", PAGE, re.DOTALL))
CONFIG = next(each for each in BLOCKS if "transforms" in each)
LINES = [
    '{"id": 1, "name": "ada", "amount": 120.5}',
    '{"id": 2, "name": "bob", "amount": 20}',
    '{"id": 3, "amount": 101}',
]


def test_the_connector_of_the_page_is_valid() -> None:
    """As far as it can be told without Spark."""
    assert {} == errors(validator().validate(CONFIG))


@pytest.mark.spark
@pytest.mark.timeout(300)
def test_the_connector_of_the_page_does_what_it_says(spark_engine: SparkEngine) -> None:
    """On lines of JSON."""
    step = sql_step(stage_choices(CONFIG))
    assert step is not None
    lines = frame(spark_engine.session(), [row(line) for line in LINES], pa.string())

    left = left_of(applied(lines, step))

    ada, _, nameless = (each["value"] for each in left)
    assert [True, False, True] == [each["keep"] for each in left]
    assert {"id": 1, "name": "ADA", "topic": "t"} == ada
    assert {"id": 3, "name": None, "topic": "t"} == nameless


@pytest.mark.spark
@pytest.mark.timeout(300)
def test_the_function_of_the_page_does_what_it_says(
    spark_engine: SparkEngine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From a module of a user's."""
    (code,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    (tmp_path / "pricing.py").write_text(code)
    monkeypatch.syspath_prepend(tmp_path)
    prices = pa.struct([("price", pa.float64())])
    rows = frame(spark_engine.session(), [row({"price": 10.0})], prices)

    (left,) = left_of(applied(rows, SqlStep(function="pricing:with_gross")))

    assert {"gross": 12.0} == left["value"]
