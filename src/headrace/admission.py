"""Which worker and connector configurations are let in, and what is told of those that are not."""

from __future__ import annotations

import importlib
import logging
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from headrace.connect.connector import ExactlyOnceSupport, SourceConnector
from headrace.connect.errors import ConfigError
from headrace.converters import converter_problems
from headrace.runtime.aliases import UnknownConnectorError, connector_path
from headrace.runtime.connector_config import (
    ConnectorConfig,
    connector_problems,
    producer_warnings,
    worker_problems,
)
from headrace.runtime.unsupported_keys import CONNECTOR_DEFAULTS
from headrace.runtime.worker_config import WorkerConfig, worker_warnings
from headrace.slot.work import BoundaryKind

_log = logging.getLogger(__name__)

_PASSED_ON = (
    "key.converter.",
    "value.converter.",
    "header.converter.",
    "producer.override.",
    "consumer.override.",
    "admin.override.",
)
_CANNOT_SAY = (
    "The connector does not implement the API required for preflight validation of exactly-once "
    "source support. Please consult the documentation for the connector to determine whether it "
    "supports exactly-once semantics, and then consider reconfiguring the connector to use the value "
    '"requested" for this property (which will disable this preflight check and allow the connector to '
    "be created)."
)
_CANNOT = "The connector does not support exactly-once semantics with the provided configuration."
_NO_BOUNDARIES = (
    "The connector does not support connector-defined transaction boundaries with the given "
    "configuration. Please reconfigure it to use a different transaction boundary definition."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Admitted:
    """A connector whose configuration has been checked; made, but not started."""

    name: str
    connector: SourceConnector
    props: Mapping[str, str] = field(repr=False)


def checked_worker(props: Mapping[str, str]) -> WorkerConfig:
    """The worker's configuration; raises :class:`~headrace.connect.errors.ConfigError` with all problems."""
    config = WorkerConfig.parse(props, where="The worker's configuration")
    problems = worker_problems(config, converter_problems)
    if problems:
        raise ConfigError(problems, where="The worker's configuration")
    for warning in worker_warnings(props):
        _log.warning("%s", warning)
    return config


def admitted(props: Mapping[str, str], worker: WorkerConfig) -> Admitted:
    """The connector that *props* describe; raises ``ConfigError`` with all problems."""
    where = f"The configuration of connector {props.get('name', '(without a name)')}"
    problems = list(connector_problems(props, worker, converter_problems))
    try:
        connector = _made(props.get("connector.class", ""), worker)
    except UnknownConnectorError as error:
        raise ConfigError([*problems, ("connector.class", str(error))], where=where) from error
    problems.extend(connector.config_class.problems(props))
    if not problems:
        problems.extend(_promise_problems(connector, props))
    if problems:
        raise ConfigError(problems, where=where)
    for key in _unknown(props, connector):
        _log.warning("The configuration '%s' was supplied but isn't a known config.", key)
    config = ConnectorConfig.parse(props)
    for warning in producer_warnings(config, worker):
        _log.warning("Connector %s: %s", config.name, warning)
    return Admitted(name=config.name, connector=connector, props=dict(props))


def _unknown(props: Mapping[str, str], connector: SourceConnector) -> list[str]:
    settings = (*ConnectorConfig.settings(), *connector.config_class.settings())
    known = {each.name for each in settings} | CONNECTOR_DEFAULTS.keys()
    return [key for key in props if key not in known and not key.startswith(_PASSED_ON)]


def _made(class_name: str, worker: WorkerConfig) -> SourceConnector:
    path = connector_path(class_name, plugin_modules=worker.plugin_modules)
    module_name, _, name = path.partition(":")
    try:
        found = getattr(importlib.import_module(module_name), name)
    except (ImportError, AttributeError) as error:
        raise UnknownConnectorError(f"{path} could not be loaded: {error}") from error
    if not (isinstance(found, type) and issubclass(found, SourceConnector)):
        raise UnknownConnectorError(f"{path} is not a SourceConnector.")
    return found()


def _promise_problems(
    connector: SourceConnector, props: Mapping[str, str]
) -> Iterator[tuple[str, str]]:
    config = ConnectorConfig.parse(props)
    support = connector.exactly_once_support(props)
    if config.requires_exactly_once and support is None:
        yield "exactly.once.support", _CANNOT_SAY
    if config.requires_exactly_once and support is ExactlyOnceSupport.UNSUPPORTED:
        yield "exactly.once.support", _CANNOT
    if (
        config.boundary is BoundaryKind.CONNECTOR
        and not connector.can_define_transaction_boundaries(props)
    ):
        yield "transaction.boundary", _NO_BOUNDARIES
