"""What is wrong with a SQL step beside its own settings: where it stands, and what its function may be."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from headrace.admission.plugins import Plugins
from headrace.admission.transforms import AliasClass, alias_classes
from headrace.connect.config import Problem
from headrace.connect.connector import PlannedConnector, SourceConnector
from headrace.runtime.settings.connector_config import ConnectorConfig
from headrace.runtime.settings.stage_settings import TRANSFORMS
from headrace.transforms.spark_sql import SPARK_SQL

# The settings that ask for a value other than the one that was read.
_OF_VALUES: Final = ("select", "function")


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
    """What somebody may expect of a SQL step that it does not do."""
    if config.errors_tolerance == "all" and _steps(props, plugins):
        yield (
            "errors.tolerance=all does not reach into SparkSql: a value that one of its expressions cannot take fails "
            "the task. Use try_cast and the like."
        )


def makes_values(props: Mapping[str, str], plugins: Plugins) -> bool:
    """Whether values become what Spark makes of them, which always has a schema; *props* need not be valid. Pure."""
    return any(
        props.get(f"{each.prefix}{key}", "").strip()
        for each in _steps(props, plugins)
        for key in _OF_VALUES
    )


def _steps(props: Mapping[str, str], plugins: Plugins) -> Sequence[AliasClass]:
    return [
        each
        for each in alias_classes(props, plugins)
        if each.key == TRANSFORMS and plugins.transforms.full_name(each.name) == SPARK_SQL
    ]


def _of_places(steps: Sequence[AliasClass], connector: SourceConnector) -> Iterator[Problem]:
    for each in steps[1:]:
        yield (
            f"{each.prefix}type",
            (
                f"A chain has at most one SparkSql, and {steps[0].alias} is one already. Ask for all of it in "
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
            "SparkSql takes no predicate: say in where which records stay, and use CASE WHEN in select.",
        )
    function = props.get(f"{step.prefix}function", "").strip()
    # What has no place in a module is told by the setting itself.
    told = plugins.function_problem(function) if ":" in function else None
    if told is not None:
        yield f"{step.prefix}function", told
