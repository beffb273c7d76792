"""PySpark's own log of what it refuses."""

from __future__ import annotations

import logging

import pytest
from pyspark.errors import AnalysisException

from headrace.spark.engine import SparkEngine

pytestmark = pytest.mark.spark


def refuse(engine: SparkEngine) -> None:
    """An expression and a column that Spark refuses: it logs the one by the other's logger."""
    session = engine.session()
    for make in (
        lambda: session.range(1).selectExpr("missing"),
        lambda: session.range(1).select("missing"),
    ):
        with pytest.raises(AnalysisException):
            make()


def test_what_spark_refuses_is_not_printed_beside_the_log(
    spark_engine: SparkEngine, capfd: pytest.CaptureFixture[str]
):
    """A worker's log has the reason; Java's trace as JSON on stderr is no one's."""
    refuse(spark_engine)

    assert "" == capfd.readouterr().err


def test_no_logger_of_it_makes_json_of_another_handlers_lines(spark_engine: SparkEngine):
    """Whatever attaches a handler to all loggers, as pytest does, keeps its formatter."""
    refuse(spark_engine)
    handler, formatter = logging.StreamHandler(), logging.Formatter("%(message)s")
    handler.setFormatter(formatter)
    for name in ("SQLQueryContextLogger", "DataFrameQueryContextLogger"):
        logger = logging.getLogger(name)
        logger.addHandler(handler)
        logger.removeHandler(handler)

    assert formatter is handler.formatter
