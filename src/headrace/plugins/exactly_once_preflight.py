"""Compares what a connector supports (exactly-once, transaction boundaries, schemas) with what its configuration requires."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping
from typing import TypeVar

from headrace.config.connector_config import CONNECTOR_CLASS, ConnectorConfig
from headrace.config.worker_config import WorkerConfig
from headrace.connect.config import Problem
from headrace.connect.connector import ExactlyOnceSupport, SourceConnector
from headrace.converters import needs_schema
from headrace.plugins.connector_plugins import Plugins
from headrace.plugins.offset_group import default_converter, offset_group_problems
from headrace.plugins.sql_step import makes_values
from headrace.task.connector_spec import BoundaryKind

_log = logging.getLogger(__name__)
_T = TypeVar("_T")

_SUPPORT = "exactly.once.support"
_BOUNDARY = "transaction.boundary"
_UNKNOWN = (
    "The connector does not implement the API required for preflight validation of exactly-once "
    "source support. Please consult the documentation for the connector to determine whether it "
    "supports exactly-once semantics, and then consider reconfiguring the connector to use the value "
    '"requested" for this property (which will disable this preflight check and allow the connector to '
    "be created)."
)
_UNSUPPORTED = (
    "The connector does not support exactly-once semantics with the provided configuration."
)
_NO_BOUNDARIES = (
    "The connector does not support connector-defined transaction boundaries with the given "
    "configuration. Please reconfigure it to use a different transaction boundary definition."
)
_NULL_BOUNDARIES = (
    "This connector has returned a null value from its canDefineTransactionBoundaries method, which is "
    "not permitted. The connector will be treated as if it cannot define its own transaction boundaries, "
    "and cannot be configured with 'transaction.boundary' set to 'connector'."
)
_SEE_LOGS = (
    "An unexpected error occurred during validation; please see the worker logs for more details."
)


def preflight_problems(
    connector: SourceConnector,
    props: Mapping[str, str],
    config: ConnectorConfig,
    worker: WorkerConfig,
    *,
    plugins: Plugins,
) -> Iterator[Problem]:
    """What *props* require of *connector* that it does not support; *props* are valid for its settings.

    Calls the connector's hooks, which are pure; one that raises is reported as a problem.
    """
    if config.requires_exactly_once:
        yield from _support_problems(connector, props)
    if config.boundary is BoundaryKind.CONNECTOR:
        can, problem = _called(lambda: connector.can_define_transaction_boundaries(props))
        if problem or not can:
            yield _BOUNDARY, problem or (_NULL_BOUNDARIES if can is None else _NO_BOUNDARIES)
    group, problem = _called(lambda: connector.offset_group(props))
    if problem:
        yield CONNECTOR_CLASS, problem
    elif group is not None:
        yield from offset_group_problems(group, config)
    default = default_converter(connector, props)
    named = config.converter("value", worker, default=default).class_name
    if needs_schema(named) and not makes_values(props, plugins):
        yield from _schema_problems(connector, props, named)


def _support_problems(connector: SourceConnector, props: Mapping[str, str]) -> Iterator[Problem]:
    support, problem = _called(lambda: connector.exactly_once_support(props))
    if problem:
        yield _SUPPORT, problem
    elif support is None:
        yield _SUPPORT, _UNKNOWN
    elif support is ExactlyOnceSupport.UNSUPPORTED:
        yield _SUPPORT, _UNSUPPORTED


def _called(hook: Callable[[], _T]) -> tuple[_T | None, str | None]:
    """What *hook* returns, and the problem if it raises."""
    try:
        return hook(), None
    except Exception as error:  # noqa: BLE001 (authors write hooks)
        _log.exception("A connector's hook failed during validation.")
        message = str(error)
        return (
            None,
            f"An unexpected error occurred during validation: {message}" if message else _SEE_LOGS,
        )


def _schema_problems(
    connector: SourceConnector, props: Mapping[str, str], named: str
) -> Iterator[Problem]:
    """Values without a schema are a problem, because the converter *named* refuses each of them."""
    schemaless = connector.schemaless(props)
    if schemaless is not None:
        message = (
            f"The converter {named} needs values with a schema, and there is none for {schemaless}."
        )
        yield "value.converter", f"{message} Set value.converter to json, string or bytes."
