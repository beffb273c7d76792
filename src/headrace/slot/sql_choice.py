"""The Spark SQL step among the transformations of a chain."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from headrace.slot.sql_step import SqlStep
from headrace.slot.work import StageChoice
from headrace.transforms.spark_sql import SPARK_SQL, SparkSqlConfig


def is_sql(choice: StageChoice) -> bool:
    """Whether *choice* is for Spark to do. Pure; classes are named in full."""
    return choice.transform.class_name == SPARK_SQL


def sql_step(choices: Sequence[StageChoice]) -> SqlStep | None:
    """What Spark is asked to do between reading and writing, if it is; a chain has at most one such step. Pure.

    Raises :class:`~headrace.connect.errors.ConfigError` for settings that are wrong.
    """
    return next((_step_of(each.transform.config) for each in choices if is_sql(each)), None)


def _step_of(settings: Mapping[str, str]) -> SqlStep:
    config = SparkSqlConfig.parse(settings)
    return SqlStep(
        select=config.items(),
        where=(config.where or "").strip() or None,
        function=(config.function or "").strip() or None,
    )
