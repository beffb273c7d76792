"""Which worker and connector configurations are let in, and what is told of those that are not."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from headrace.class_path import class_at
from headrace.connect.connector import ExactlyOnceSupport, SourceConnector
from headrace.connect.errors import ConfigError, TaskFailedError
from headrace.converters import converter_problems, needs_schema
from headrace.runtime.aliases import UnknownConnectorError, connector_path
from headrace.runtime.config_values import config_texts
from headrace.runtime.connector_config import (
    ConnectorConfig,
    connector_problems,
    connector_warnings,
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


def checked_worker(
    props: Mapping[str, object], *, where: str = "The worker's configuration"
) -> WorkerConfig:
    """The worker's configuration; *where* it was read, such as a file's path, is told with its problems.

    Numbers and booleans are taken as text. Raises :class:`~headrace.connect.errors.ConfigError` with all
    problems.
    """
    texts = config_texts(props, where=where)
    config = WorkerConfig.parse(texts, where=where)
    problems = worker_problems(config, converter_problems)
    if problems:
        raise ConfigError(problems, where=where)
    for warning in worker_warnings(texts):
        _log.warning("%s", warning)
    return config


def all_admitted(
    configs: Iterable[Callable[[], Mapping[str, object]]], worker: WorkerConfig
) -> list[Admitted]:
    """The connectors whose configurations *configs* read, in their order, none of them started.

    Raises one ``ConfigError`` with all problems of all of them; a name that is there already is one.
    """
    connectors = dict[str, Admitted]()
    errors = list[ConfigError]()
    for read in configs:
        try:
            one = admitted(read(), worker)
            if one.name in connectors:
                told = f"Connector {one.name} already exists"
                errors.append(ConfigError([("name", told)], where=_where(one.props)))
            connectors.setdefault(one.name, one)
        except ConfigError as error:
            errors.append(error)
    if errors:
        raise errors[0] if len(errors) == 1 else ConfigError.together(errors)
    return list(connectors.values())


def admitted(given: Mapping[str, object], worker: WorkerConfig) -> Admitted:
    """The connector that *given* describes; raises ``ConfigError`` with all problems."""
    where = _where(given)
    props = config_texts(given, where=where)
    problems = list(connector_problems(props, worker, converter_problems))
    try:
        connector = _made(props.get("connector.class", ""), worker)
    except UnknownConnectorError as error:
        raise ConfigError([*problems, ("connector.class", str(error))], where=where) from error
    problems.extend(connector.problems(props))
    if not problems:
        problems.extend(_promise_problems(connector, props))
        problems.extend(_schema_problems(connector, props, worker))
    if problems:
        raise ConfigError(problems, where=where)
    config = ConnectorConfig.parse(props)
    for key in _unknown(props, connector):
        _log.warning(
            "Connector %s: The configuration '%s' was supplied but isn't a known config.",
            config.name,
            key,
        )
    for warning in connector_warnings(config, worker):
        _log.warning("Connector %s: %s", config.name, warning)
    return Admitted(name=config.name, connector=connector, props=dict(props))


def _where(props: Mapping[str, object]) -> str:
    return f"The configuration of connector {props.get('name', '(without a name)')}"


def _unknown(props: Mapping[str, str], connector: SourceConnector) -> list[str]:
    settings = (*ConnectorConfig.settings(), *connector.config_class.settings())
    known = {each.name for each in settings} | CONNECTOR_DEFAULTS.keys()
    return [key for key in props if key not in known and not key.startswith(_PASSED_ON)]


def _made(class_name: str, worker: WorkerConfig) -> SourceConnector:
    path = connector_path(class_name, plugin_modules=worker.plugin_modules)
    try:
        found = class_at(path, SourceConnector)
    except TaskFailedError as error:
        raise UnknownConnectorError(str(error)) from error
    return found()


def _schema_problems(
    connector: SourceConnector, props: Mapping[str, str], worker: WorkerConfig
) -> Iterator[tuple[str, str]]:
    """A converter of values that would refuse each of them."""
    named = ConnectorConfig.parse(props).converter("value", worker).class_name
    schemaless = connector.schemaless(props) if needs_schema(named) else None
    if schemaless is not None:
        told = (
            f"The converter {named} needs values with a schema, and there is none for {schemaless}."
        )
        yield "value.converter", f"{told} Set value.converter to json, string or bytes."


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
