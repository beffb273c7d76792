"""A SQL step in a connector's configuration: the types of the records that reach it, and what is wrong with the step."""

from __future__ import annotations

import itertools
import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final

from headrace.config.connector_config import TRANSFORMS, ConnectorConfig, aliases
from headrace.connect.config import Problem
from headrace.connect.connector import PlannedConnector, SourceConnector
from headrace.connect.errors import ConnectError
from headrace.plugins.connector_plugins import Plugins
from headrace.plugins.transforms import AliasClass, alias_classes
from headrace.task.connector_spec import StageChoice
from headrace.task.sql.planned_types import planned_types
from headrace.task.sql.step import SqlStage, is_sql, sql_step
from headrace.transforms.spark_sql import SPARK_SQL

_log = logging.getLogger(__name__)

SqlCheck = Callable[[SqlStage], Sequence[Problem]]
"""Returns what is wrong with a SQL step on records of its types: settings of SparkSql, each with a sentence."""

# The settings that replace the value that was read.
_OF_VALUES: Final = ("select", "function")


def no_sql_check(_: SqlStage) -> Sequence[Problem]:
    """For callers without Spark: it reports wrong expressions when the connector starts."""
    return ()


def sql_stage(
    connector: SourceConnector, props: Mapping[str, str], stages: Sequence[StageChoice]
) -> SqlStage | None:
    """What Spark does between the *stages* before the SQL step and those after it; ``None`` without such a step.

    Raises :class:`~headrace.connect.errors.TaskFailedError` when the types of records cannot be determined.
    """
    step = sql_step(stages)
    if step is None:
        return None
    before = list(itertools.takewhile(lambda each: not is_sql(each), stages))
    types = planned_types(connector.record_schemas(props), before)
    return SqlStage(step=replace(step, prefix=_prefix(props, stages)), types=types)


def sql_stage_problems(
    connector: SourceConnector,
    props: Mapping[str, str],
    stages: Sequence[StageChoice],
    check: SqlCheck = no_sql_check,
) -> Iterator[Problem]:
    """Why the SQL step of a configuration that is valid otherwise cannot work on the records that reach it."""
    try:
        stage = sql_stage(connector, props, stages)
        found = () if stage is None else check(stage)
    except Exception as error:  # noqa: BLE001 (authors write hooks)
        if not isinstance(error, ConnectError):
            _log.exception("A connector's hook failed during validation.")
        found = (("type", str(error)),)
    for name, sentence in found:
        yield f"{_prefix(props, stages)}{name}", sentence


def _prefix(props: Mapping[str, str], stages: Sequence[StageChoice]) -> str:
    place = [is_sql(each) for each in stages].index(True)
    return f"{TRANSFORMS}.{aliases(TRANSFORMS, props)[place]}."


def sql_problems(
    props: Mapping[str, str],
    plugins: Plugins,
    connector: SourceConnector,
) -> Iterator[Problem]:
    """What is wrong with the SQL steps in the chain of *props*; may import the module of a function."""
    steps = _steps(props, plugins)
    yield from _of_places(steps, connector)
    for each in steps:
        yield from _of_step(each, props, plugins)


def sql_warnings(
    props: Mapping[str, str], plugins: Plugins, config: ConnectorConfig
) -> Iterator[str]:
    """Sentences about what a user may expect of a SQL step, but it does not do."""
    if config.errors_tolerance == "all" and _steps(props, plugins):
        yield (
            "errors.tolerance=all does not apply to SparkSql: a value that one of its expressions rejects fails the "
            "task. Use try_cast and similar functions."
        )


def makes_values(props: Mapping[str, str], plugins: Plugins) -> bool:
    """Whether Spark computes the values, which then always have a schema; *props* need not be valid. Pure."""
    return any(
        props.get(f"{each.prefix}{key}", "").strip()
        for each in _steps(props, plugins)
        for key in _OF_VALUES
    )


def _steps(props: Mapping[str, str], plugins: Plugins) -> Sequence[AliasClass]:
    return [
        each
        for each in alias_classes(props, plugins.stages)
        if each.key == TRANSFORMS and each.plugins.full_name(each.name) == SPARK_SQL
    ]


def _of_places(steps: Sequence[AliasClass], connector: SourceConnector) -> Iterator[Problem]:
    for each in steps[1:]:
        yield (
            f"{each.prefix}type",
            (
                f"A chain can have only one SparkSql, and {steps[0].alias} is one already. Combine them into "
                "one select, where and function."
            ),
        )
    if steps and not isinstance(connector, PlannedConnector):
        yield (
            f"{steps[0].prefix}type",
            (
                f"SparkSql needs a connector whose work is planned, such as files: {type(connector).__name__} "
                "is polled, and may have to acknowledge what it has read. Use other transformations."
            ),
        )


def _of_step(step: AliasClass, props: Mapping[str, str], plugins: Plugins) -> Iterator[Problem]:
    if props.get(f"{step.prefix}predicate", "").strip():
        yield (
            f"{step.prefix}predicate",
            "SparkSql takes no predicate: filter records with where, and use CASE WHEN in select.",
        )
    function = props.get(f"{step.prefix}function", "").strip()
    # A value without a colon is reported by the setting itself.
    message = plugins.function_problem(function) if ":" in function else None
    if message is not None:
        yield f"{step.prefix}function", message
