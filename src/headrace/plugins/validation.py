"""Validates a connector's configuration, for a request (every key with its value and errors) and for a start."""

from __future__ import annotations

import logging
from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from enum import Enum, auto
from typing import Final

from headrace.config.aliases import UnknownConnectorError
from headrace.config.config_files import config_texts
from headrace.config.connector_config import (
    CONNECTOR_CLASS,
    ConnectorConfig,
    aliases,
    connector_version,
)
from headrace.config.providers import Resolution, resolved_in
from headrace.config.rules import connector_problems, connector_warnings
from headrace.config.topic_settings import DEFAULT, GROUPS
from headrace.config.unknown_keys import hinted, unknown_key_warnings
from headrace.config.worker_config import OVERRIDES, ROLES, WorkerConfig
from headrace.connect.config import Problem
from headrace.connect.connector import SourceConnector
from headrace.connect.errors import ConfigError
from headrace.connect.setting import HIDDEN, Setting, SettingType
from headrace.herder.answers import CheckedKey, ConfigInfos, ConfigValue, value_text
from headrace.plugins.config_def import (
    Reading,
    ValidationErrors,
    framework_settings,
    in_worker,
    reading,
    refused_null,
    section_keys,
    section_problems,
    sections,
)
from headrace.plugins.connector_plugins import Plugins
from headrace.plugins.connector_spec import ValidatedConnector
from headrace.plugins.exactly_once_preflight import preflight_problems
from headrace.plugins.offset_group import default_converter
from headrace.plugins.sql_step import (
    SqlCheck,
    no_sql_check,
    sql_problems,
    sql_stage_problems,
    sql_warnings,
)
from headrace.plugins.transforms import (
    chain_problems,
    chain_props,
    chain_settings,
    chosen_stages,
    in_chains,
    is_passed_on,
    setting_problems,
    shown_class,
)
from headrace.plugins.versions import connector_version_problems, version_key

_log = logging.getLogger(__name__)

_NAME = "name"
_PASSED_ON = (*(f"{role}.converter." for role in ROLES), *OVERRIDES)


class _Needs(Enum):
    """What has to be right already where a rule is checked."""

    NOTHING = auto()
    CONNECTOR = auto()
    """The connector's class."""
    OWN_SETTINGS = auto()
    """The settings of the connector's class, too."""
    EVERYTHING = auto()


class _Shown(Enum):
    """How the answer to a validation shows what a rule finds; a start shows the sentences alone."""

    NEW_KEYS = auto()
    """For keys without errors. Some problems hide others: the rule is checked again without the wrong keys until it
    finds no more."""
    HINTED = auto()
    """With the misspelt key, if there is one that was most likely meant."""
    AS_IS = auto()
    """The sentences name their keys, or are Kafka Connect's."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Candidate:
    """What is validated: *props* for the connector that is *made*, if its class can be.

    *chain* are the properties by which transformations and predicates are checked, and *usable* returns those that
    are not known to be wrong. *sql* checks expressions.
    """

    made: SourceConnector | None
    props: Mapping[str, str]
    chain: Mapping[str, str]
    usable: Callable[[], Mapping[str, str]]
    worker: WorkerConfig
    plugins: Plugins
    sql: SqlCheck = no_sql_check

    @property
    def connector(self) -> SourceConnector:
        """The connector, for the rules that need it."""
        assert self.made is not None
        return self.made


@dataclass(frozen=True, slots=True)
class _Rule:
    """One check of a connector's configuration, which calls no broker; may call the hooks of the connector."""

    problems: Callable[[_Candidate], Iterable[Problem]]
    shown: _Shown
    needs: _Needs = _Needs.NOTHING


def _preflight(it: _Candidate) -> Iterator[Problem]:
    config = ConnectorConfig.parse(it.usable())
    return preflight_problems(it.connector, it.props, config, it.worker, plugins=it.plugins)


def _sql_stage(it: _Candidate) -> Iterator[Problem]:
    # An example record goes through the chain, and Spark checks the step.
    stages = chosen_stages(it.chain, it.plugins.stages)
    return sql_stage_problems(it.connector, {**it.props, **it.chain}, stages, it.sql)


_RULES: Final = (
    _Rule(
        lambda it: connector_problems(it.usable(), it.worker, it.plugins.converters.problems),
        _Shown.NEW_KEYS,
    ),
    _Rule(lambda it: setting_problems(it.chain, it.plugins.stages), _Shown.NEW_KEYS),
    _Rule(lambda it: chain_problems(it.chain, it.plugins.stages), _Shown.AS_IS),
    _Rule(
        lambda it: sql_problems(it.chain, it.plugins, it.connector),
        _Shown.AS_IS,
        _Needs.CONNECTOR,
    ),
    _Rule(
        lambda it: connector_version_problems(it.connector, it.props),
        _Shown.NEW_KEYS,
        _Needs.CONNECTOR,
    ),
    _Rule(lambda it: it.connector.problems(it.props), _Shown.HINTED, _Needs.CONNECTOR),
    _Rule(_preflight, _Shown.AS_IS, _Needs.OWN_SETTINGS),
    _Rule(_sql_stage, _Shown.AS_IS, _Needs.EVERYTHING),
)
"""All that can be wrong with a connector's configuration, in the order in which it is found."""


def validation(
    submitted: Resolution,
    connector: SourceConnector,
    worker: WorkerConfig,
    plugins: Plugins,
    *,
    sql: SqlCheck = no_sql_check,
) -> ConfigInfos:
    """What is wrong with *submitted* for *connector* in *worker*, with every key and its value.

    *sql* checks expressions. Calls the connector's hooks, which are pure, but no broker; raises what they raise.
    """
    return _Validation(submitted, connector, worker, plugins, sql=sql).infos()


class _Validation:
    """One validation, on one thread."""

    def __init__(
        self,
        submitted: Resolution,
        connector: SourceConnector,
        worker: WorkerConfig,
        plugins: Plugins,
        *,
        sql: SqlCheck,
    ) -> None:
        self._submitted = submitted
        self._props = _with_groups_as_given(submitted)
        self._chains = chain_props(submitted)
        self._connector = connector
        self._worker = worker
        self._plugins = plugins
        self._converters = plugins.converters
        self._framework = self._framework_settings()
        self._settings = {
            **self._framework,
            **{each.name: each for each in connector.config_class.settings()},
        }
        self._sections = sections(self._props, plugins.converters)
        appended = {each.name: each for part in self._sections for each in part.settings}
        defined = {**self._settings, **appended}
        self._accepted = frozenset(
            key
            for key in submitted.nulls()
            if key in self._own_names() and not self._settings[key].required
        )
        self._readings = {
            name: Reading() if name in self._accepted else reading(setting, submitted.resolved)
            for name, setting in self._settings.items()
        }
        self._errors = ValidationErrors(defined, submitted)
        self._has_own_problems = False
        self._candidate = _Candidate(
            made=connector,
            props=self._props,
            chain=self._chains,
            usable=self._usable,
            worker=worker,
            plugins=plugins,
            sql=sql,
        )

    def infos(self) -> ConfigInfos:
        """Run all checks; called once."""
        self._check_all()
        own = [*self._undefined(), *map(self._checked, self._settings)]
        given, errors = self._submitted.resolved, self._errors
        appended = [
            each
            for part in self._sections
            for each in section_keys(part, given, errors)
            if each.value.name not in self._settings
        ]
        shown = (
            *self._settings.values(),
            *(each for part in self._sections for each in part.settings),
        )
        groups = dict.fromkeys(each.group for each in shown if each.group)
        return ConfigInfos(
            name=str(self._submitted.given.get(CONNECTOR_CLASS)),
            error_count=sum(len(each.value.errors) for each in own)
            # Kafka Connect counts keys here, not messages.
            + sum(1 for each in appended if each.value.errors),
            groups=tuple(groups),
            configs=[self._unresolved(each) for each in (*own, *appended)],
        )

    def _check_all(self) -> None:
        errors = self._errors
        errors.add(self._submitted.problems)
        read = (
            (name, message) for name, found in self._readings.items() for message in found.errors
        )
        errors.add_new(self._hinted(read))
        for part in self._sections:
            errors.add_new(section_problems(part, self._submitted.resolved))
        refused = (key for key in self._submitted.nulls() if key not in self._accepted)
        errors.add_new((key, refused_null(key)) for key in refused)
        for rule in _RULES:
            if self._may_check(rule):
                self._check(rule)
        self._check_versions()

    def _may_check(self, rule: _Rule) -> bool:
        if rule.needs is _Needs.OWN_SETTINGS:
            return not self._has_own_problems
        return rule.needs is not _Needs.EVERYTHING or not self._errors.all_keys()

    def _check(self, rule: _Rule) -> None:
        if rule.shown is _Shown.AS_IS:
            self._errors.add(rule.problems(self._candidate), as_is=True)
        elif rule.shown is _Shown.HINTED:
            own = tuple(self._hinted(rule.problems(self._candidate)))
            self._has_own_problems = bool(own)
            reported = {key for key, _ in self._submitted.problems} | {*self._submitted.nulls()}
            self._errors.add((key, sentence) for key, sentence in own if key not in reported)
        else:
            known = -1
            while known < len(self._errors.all_keys()):
                known = len(self._errors.all_keys())
                self._errors.add_new(map(_as_connect, rule.problems(self._candidate)))

    def _check_versions(self) -> None:
        """Report at the class, too, that it is not available in the required version."""
        classes = (key for key, each in self._settings.items() if each.type is SettingType.CLASS)
        for key in (*classes, CONNECTOR_CLASS):
            for message in self._errors.of(version_key(key)):
                # Kafka Connect reports a range that cannot be read at the class of a transformation, not of a converter.
                if not key.endswith(".converter") or message.startswith("Plugin "):
                    self._errors.add([(key, message)], as_is=True)

    def _framework_settings(self) -> dict[str, Setting]:
        default = default_converter(self._connector, self._props)
        settings = (
            *(
                in_worker(each, self._props, self._worker, self._converters, default=default)
                for each in framework_settings(connector_version(type(self._connector)))
            ),
            *chain_settings(self._chains, self._plugins.stages),
        )
        return {each.name: each for each in settings}

    def _own_names(self) -> frozenset[str]:
        return frozenset(each.name for each in self._connector.config_class.settings())

    def _hinted(self, problems: Iterable[Problem]) -> Iterator[Problem]:
        """*problems*, each with the unknown key, most likely misspelt, that may have been meant for it."""
        given = self._submitted.given
        prefixes = tuple(part.prefix for part in self._sections)
        unknown = (
            key for key in given if key not in self._settings and not key.startswith(prefixes)
        )
        return hinted(problems, given, unknown)

    def _usable(self) -> dict[str, str]:
        """The properties without the wrong ones."""
        return _without(
            frozenset(self._errors.all_keys()),
            {key: value for key, value in self._props.items() if not in_chains(key, self._chains)},
        )

    def _undefined(self) -> Iterator[CheckedKey]:
        prefixes = tuple(part.prefix for part in self._sections)
        for key in self._errors.all_keys():
            if key not in self._settings and not key.startswith(prefixes):
                there = self._submitted.given.get(key) is not None
                value = self._errors.value_of(key) if there else None
                yield _checked(None, key, value, self._errors)

    def _checked(self, name: str) -> CheckedKey:
        setting = self._settings[name]
        text = self._text(setting, self._readings[name])
        if name in self._framework and self._is_lost(name):
            text = None
        return _checked(setting, name, text, self._errors)

    def _text(self, setting: Setting, found: Reading) -> str | None:
        text = value_text(found.value, setting.type)
        if not text:
            return text
        if setting.name in {f"{role}.converter" for role in ROLES}:
            return self._converters.full_name(text)
        return shown_class(setting.name, self._chains, self._plugins.stages) or text

    def _is_lost(self, name: str) -> bool:
        """Whether *name* is a class that cannot be found, which Kafka Connect shows without a value."""
        return self._settings[name].type is SettingType.CLASS and any(
            each.endswith("could not be found.") for each in self._errors.of(name)
        )

    def _unresolved(self, checked: CheckedKey) -> CheckedKey:
        """Show the submitted text in place of a resolved placeholder, which is a secret."""
        value = checked.value
        given = self._submitted.given.get(value.name)
        if given == self._submitted.resolved.get(value.name) or value.value in (None, HIDDEN):
            return checked
        return replace(checked, value=replace(value, value=given))


def _with_groups_as_given(submitted: Resolution) -> dict[str, str]:
    """Resolved, except for the names of groups: keys contain them, and would show what a placeholder stands for."""
    props, given = submitted.props(), submitted.given.get(GROUPS)
    return props if given is None or GROUPS not in props else {**props, GROUPS: given}


def _checked(
    setting: Setting | None, name: str, text: str | None, errors: ValidationErrors
) -> CheckedKey:
    recommended = () if setting is None else setting.recommended
    return CheckedKey(
        definition=setting,
        value=ConfigValue(name=name, value=text, errors=errors.of(name), recommended=recommended),
    )


def _as_connect(problem: Problem) -> Problem:
    """Without the choices after Kafka Connect's own sentence: they are the key's recommended values."""
    key, sentence = problem
    before, found, _ = sentence.partition(" could not be found.")
    return key, f"{before}{found}" if before.startswith("Class ") else sentence


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
    where = _where(given)
    submitted = resolved_in(worker.originals, config_texts(given, where=where))
    made = checked_connector(submitted, worker, Plugins(worker))
    for warning in made.warnings:
        _log.warning("Connector %s: %s", made.name, warning)
    return made


def checked_connector(
    submitted: Resolution, worker: WorkerConfig, plugins: Plugins
) -> ValidatedConnector:
    """The connector that is *submitted*, made; a key whose value is null counts as not set.

    Raises ``ConfigError`` with all problems; none of them shows what a placeholder stands for.
    """
    given = {key: text for key, text in submitted.given.items() if text is not None}
    where = _where(given)
    if submitted.problems:
        raise ConfigError(submitted.problems, where=where)
    props = submitted.props()
    with submitted.masked_exceptions():
        connector, problems = _for_start(props, worker, plugins)
    if connector is None or problems:
        # An author's class may report a key that was not given and that contains a secret.
        shown = [
            (key if key in given else submitted.masked(key), submitted.masked(sentence))
            for key, sentence in problems
        ]
        unknown = () if connector is None else _unknown(connector, props, plugins)
        raise ConfigError(shown, where=where, warnings=[submitted.masked(each) for each in unknown])
    config = ConnectorConfig.parse(props)
    default = default_converter(connector, props)
    chosen = (config.converter(role, worker, default=default) for role in ROLES)
    return ValidatedConnector(
        name=config.name,
        connector=connector,
        props=props,
        given=given,
        secrets=submitted.secrets,
        converters=tuple(
            replace(each, class_name=plugins.converters.path(each.class_name)) for each in chosen
        ),
        transforms=chosen_stages(props, plugins.stages),
        settings=(*connector.config_class.settings(), *chain_settings(props, plugins.stages)),
        warnings=tuple(map(submitted.masked, _warnings(connector, props, worker, plugins))),
    )


def _for_start(
    props: Mapping[str, str], worker: WorkerConfig, plugins: Plugins
) -> tuple[SourceConnector | None, list[Problem]]:
    """The connector, if there is one, and everything that is wrong with its configuration."""
    connector, no_class = None, list[Problem]()
    try:
        connector = plugins.connector(props.get(CONNECTOR_CLASS, ""))
    except UnknownConnectorError as error:
        no_class.append((CONNECTOR_CLASS, str(error)))
    problems = list[Problem]()
    candidate = _Candidate(
        made=connector,
        props=props,
        chain=props,
        usable=lambda: _without(dict(problems), props) if problems else props,
        worker=worker,
        plugins=plugins,
    )
    has_own_problems = False
    for rule in _RULES:
        if connector is None and rule.needs is not _Needs.NOTHING:
            continue
        if has_own_problems and rule.needs is _Needs.OWN_SETTINGS:
            continue
        if problems and rule.needs is _Needs.EVERYTHING:
            continue
        found = tuple(rule.problems(candidate))
        has_own_problems |= rule.shown is _Shown.HINTED and bool(found)
        problems.extend(found)
        while rule.shown is _Shown.NEW_KEYS and found:
            reported = dict(problems)
            found = tuple(each for each in rule.problems(candidate) if each[0] not in reported)
            problems.extend(found)
    return connector, [*problems, *no_class]


def _without(wrong: Container[str], props: Mapping[str, str]) -> dict[str, str]:
    """*props* without the *wrong* keys, so that one answer can have the problems of the rest, too."""
    # Placeholders: these two only have to be present.
    usable = {key: value for key, value in props.items() if key not in wrong}
    return {_NAME: "it", CONNECTOR_CLASS: "its", **usable}


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
    passed_on = (
        *_PASSED_ON,
        *connector.passed_on,
        *(f"topic.creation.{each}." for each in (*groups, DEFAULT)),
    )
    unknown = (key for key in props if key not in known and not key.startswith(passed_on))
    yield from unknown_key_warnings(
        (key for key in unknown if not is_passed_on(key, props, plugins.stages)), known
    )
    yield from plugins.converters.unknown_key_warnings(props)


def _where(props: Mapping[str, object]) -> str:
    # Elsewhere the connector may well have a name: a record of the config topic has it in its key, too.
    named = (
        f"connector {props['name']}" if "name" in props else "a connector, which does not name it,"
    )
    return f"The configuration of {named}"
