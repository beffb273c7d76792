"""Checks connectors' configurations and makes the connectors, ready to run."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from headrace.config.aliases import UnknownConnectorError
from headrace.config.client_settings import OwnOffsets, own_offsets
from headrace.config.config_files import config_texts
from headrace.config.connector_config import ConnectorConfig, aliases
from headrace.config.rules import connector_problems, connector_warnings
from headrace.config.secret_values import hidden_values, resolved_in
from headrace.config.topic_settings import DEFAULT, GROUPS
from headrace.config.unknown_keys import unknown_key_warnings
from headrace.config.worker_config import OVERRIDES, ROLES, WorkerConfig
from headrace.connect.config import Problem
from headrace.connect.connector import SourceConnector
from headrace.connect.errors import ConfigError
from headrace.connect.setting import Setting
from headrace.offsets.target import DriverStore, OffsetTarget, OffsetTopic
from headrace.plugins.connector_plugins import Plugins
from headrace.plugins.exactly_once_preflight import promise_problems
from headrace.plugins.sql_step import sql_problems, sql_stage, sql_stage_problems, sql_warnings
from headrace.plugins.transforms import (
    chain_problems,
    chain_settings,
    chosen_stages,
    is_passed_on,
    setting_problems,
)
from headrace.plugins.versions import connector_version_problems
from headrace.runtime.services import RunSpec
from headrace.task.chain import is_sql
from headrace.task.connector_spec import BoundaryKind, PluginChoice, StageChoice

_log = logging.getLogger(__name__)

_PASSED_ON = (
    "key.converter.",
    "value.converter.",
    "header.converter.",
    *OVERRIDES,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ValidatedConnector:
    """A connector whose configuration has been checked; made, but not started.

    *props* are resolved and hold secrets: only *given*, with its placeholders, may be stored or shown.
    *secrets* are what was put in, each with its placeholder. *converters* are those of ``ROLES``, as slots make them,
    and so are the *transforms*. *settings* are those of the connector's class and of its aliases.
    """

    name: str
    connector: SourceConnector
    props: Mapping[str, str] = field(repr=False)
    given: Mapping[str, str] = field(repr=False)
    secrets: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    converters: tuple[PluginChoice, ...] = field(default=(), repr=False)
    transforms: tuple[StageChoice, ...] = field(default=(), repr=False)
    settings: tuple[Setting, ...] = ()
    warnings: tuple[str, ...] = ()

    @property
    def plugins(self) -> tuple[PluginChoice, ...]:
        """Everything that its slots instantiate besides tasks."""
        return (*self.converters, *(one for each in self.transforms for one in each.plugins))

    @property
    def has_sql(self) -> bool:
        """Whether its records pass through Spark's JVM."""
        return any(map(is_sql, self.transforms))


def validated_connectors(
    configs: Iterable[Callable[[], Mapping[str, object]]], worker: WorkerConfig
) -> list[ValidatedConnector]:
    """The connectors whose configurations *configs* read, in their order, none of them started.

    Raises one ``ConfigError`` with the problems of all of them; a duplicate name is one of these.
    """
    connectors = dict[str, ValidatedConnector]()
    errors = list[ConfigError]()
    for read in configs:
        try:
            one = validated_connector(read(), worker)
            if one.name in connectors:
                message = f"Connector {one.name} already exists"
                errors.append(ConfigError([("name", message)], where=_where(one.props)))
            connectors.setdefault(one.name, one)
        except ConfigError as error:
            errors.append(error)
    if errors:
        raise errors[0] if len(errors) == 1 else ConfigError.together(errors)
    return list(connectors.values())


def validated_connector(given: Mapping[str, object], worker: WorkerConfig) -> ValidatedConnector:
    """The connector that *given* describes, with its warnings logged; raises ``ConfigError``."""
    made = checked_connector(given, worker, Plugins(worker))
    for warning in made.warnings:
        _log.warning("Connector %s: %s", made.name, warning)
    return made


def checked_connector(
    given: Mapping[str, object], worker: WorkerConfig, plugins: Plugins
) -> ValidatedConnector:
    """The connector that *given* describes, with its placeholders resolved.

    Raises ``ConfigError`` with all problems; none of them shows what a placeholder stands for.
    """
    where = _where(given)
    texts = config_texts(given, where=where)
    submitted = resolved_in(worker.originals, texts)
    if submitted.problems:
        raise ConfigError(submitted.problems, where=where)
    props = submitted.props()
    with submitted.kept_secret():
        connector, problems = _judged(props, worker, plugins)
    if connector is None or problems:
        # An author's class may report a key that was not given and that contains a secret.
        shown = [
            (key if key in texts else submitted.masked(key), submitted.masked(sentence))
            for key, sentence in problems
        ]
        unknown = () if connector is None else _unknown(connector, props, plugins)
        raise ConfigError(shown, where=where, warnings=[submitted.masked(each) for each in unknown])
    config = ConnectorConfig.parse(props)
    chosen = (config.converter(role, worker) for role in ROLES)
    return ValidatedConnector(
        name=config.name,
        connector=connector,
        props=props,
        given=texts,
        secrets=submitted.secrets,
        converters=tuple(
            replace(each, class_name=plugins.converters.path(each.class_name)) for each in chosen
        ),
        transforms=chosen_stages(props, plugins.stages),
        settings=(*connector.config_class.settings(), *chain_settings(props, plugins.stages)),
        warnings=tuple(map(submitted.masked, _warnings(connector, props, worker, plugins))),
    )


def _judged(
    props: Mapping[str, str], worker: WorkerConfig, plugins: Plugins
) -> tuple[SourceConnector | None, list[Problem]]:
    """The connector, if there is one, and everything that is wrong with its configuration."""
    problems = [
        *connector_problems(props, worker, plugins.converters.problems),
        *setting_problems(props, plugins.stages),
        *chain_problems(props, plugins.stages),
    ]
    try:
        connector = plugins.connector(props.get("connector.class", ""))
    except UnknownConnectorError as error:
        return None, [*problems, ("connector.class", str(error))]
    problems.extend(sql_problems(props, plugins, connector))
    problems.extend(connector_version_problems(connector, props))
    problems.extend(connector.problems(props))
    if not problems:
        config = ConnectorConfig.parse(props)
        problems.extend(promise_problems(connector, props, config, worker, plugins=plugins))
    if not problems:
        problems.extend(sql_stage_problems(connector, props, chosen_stages(props, plugins.stages)))
    return connector, problems


def _warnings(
    connector: SourceConnector, props: Mapping[str, str], worker: WorkerConfig, plugins: Plugins
) -> Iterator[str]:
    """Sentences about keys that nothing defines, and about settings without effect."""
    config = ConnectorConfig.parse(props)
    yield from _unknown(connector, props, plugins)
    yield from connector_warnings(config, worker)
    yield from sql_warnings(props, plugins, config)


def _unknown(
    connector: SourceConnector, props: Mapping[str, str], plugins: Plugins
) -> Iterator[str]:
    """Sentences about keys that nothing defines; *props* may be wrong."""
    known = {
        each.name
        for each in (
            *ConnectorConfig.settings(),
            *connector.config_class.settings(),
            *chain_settings(props, plugins.stages),
        )
    }
    groups = aliases(GROUPS, props)
    passed_on = (*_PASSED_ON, *(f"topic.creation.{each}." for each in (*groups, DEFAULT)))
    unknown = (key for key in props if key not in known and not key.startswith(passed_on))
    yield from unknown_key_warnings(
        (key for key in unknown if not is_passed_on(key, props, plugins.stages)), known
    )
    yield from plugins.converters.unknown_key_warnings(props)


def _where(props: Mapping[str, object]) -> str:
    return f"The configuration of connector {props.get('name', '(without a name)')}"


def run_spec(validated: ValidatedConnector, worker: WorkerConfig, group_id: str) -> RunSpec:
    """A connector with every setting resolved. Pure."""
    config = ConnectorConfig.parse(validated.props)
    producer, admin = config.producer(worker), config.admin(worker)
    worker_topic = worker.offsets_topic(group_id) if worker.offsets_in_topic else None
    own = own_offsets(config, worker, group_id)
    key, value, header = validated.converters
    hidden = hidden_values(
        validated.secrets,
        validated.settings,
        validated.props,
        producer,
        admin,
        *(each.config for each in validated.plugins),
    )
    return RunSpec(
        name=config.name,
        connector=validated.connector,
        props=validated.props,
        max_tasks=config.tasks_max,
        enforces_max_tasks=config.tasks_max_enforce,
        delivery=worker.delivery,
        producer=producer,
        admin=admin,
        offsets=_target(own, worker_topic),
        own_offsets=own,
        key_converter=key,
        value_converter=value,
        header_converter=header,
        transforms=validated.transforms,
        sql_stage=sql_stage(validated.connector, validated.props, validated.transforms),
        boundary=config.boundary if worker.exactly_once else BoundaryKind.INTERVAL,
        commit_seconds=config.commit_seconds(worker),
        records_per_second=config.max_records_per_second,
        errors=config.errors,
        topic_groups=config.topic_groups if worker.topic_creation_enable else (),
        hidden=hidden,
    )


def _target(own: OwnOffsets | None, worker_topic: str | None) -> OffsetTarget:
    if own is not None:
        return OffsetTopic(name=own.topic, has_secondary=True)
    return DriverStore() if worker_topic is None else OffsetTopic(name=worker_topic)
