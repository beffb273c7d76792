"""Validates a connector's configuration: every key with its value and errors."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from headrace.config.connector_config import ConnectorConfig, connector_version
from headrace.config.rules import connector_problems
from headrace.config.secret_values import Resolution
from headrace.config.topic_settings import GROUPS
from headrace.config.unknown_keys import connector_refusals, hinted
from headrace.config.worker_config import ROLES, WorkerConfig
from headrace.connect.config import Problem
from headrace.connect.connector import SourceConnector
from headrace.connect.setting import HIDDEN, Setting, SettingType
from headrace.herder.answers import CheckedKey, ConfigInfos, ConfigValue, value_text
from headrace.plugins.config_def import (
    framework_settings,
    in_worker,
    section_keys,
    section_problems,
    sections,
)
from headrace.plugins.connector_plugins import Plugins
from headrace.plugins.exactly_once_preflight import promise_problems
from headrace.plugins.sql_step import SqlJudge, no_judge, sql_problems, sql_stage_problems
from headrace.plugins.transforms import (
    chain_problems,
    chain_props,
    chain_settings,
    chosen_stages,
    in_chains,
    shown_class,
)
from headrace.plugins.validation_errors import Reading, ValidationErrors, reading, refused_null
from headrace.plugins.versions import connector_version_problems, version_key

_CLASS = "connector.class"
_NAME = "name"


def validation(
    submitted: Resolution,
    connector: SourceConnector,
    worker: WorkerConfig,
    plugins: Plugins,
    *,
    sql: SqlJudge = no_judge,
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
        sql: SqlJudge,
    ) -> None:
        self._sql = sql
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
            name=str(self._submitted.given.get(_CLASS)),
            error_count=sum(len(each.value.errors) for each in own)
            # Kafka Connect counts keys here, not messages.
            + sum(1 for each in appended if each.value.errors),
            groups=tuple(groups),
            configs=[self._unresolved(each) for each in (*own, *appended)],
        )

    def _check_all(self) -> None:
        props, errors = self._props, self._errors
        errors.add(self._submitted.problems)
        read = (
            (name, message) for name, found in self._readings.items() for message in found.errors
        )
        errors.add_new(self._hinted(read))
        for part in self._sections:
            errors.add_new(section_problems(part, self._submitted.resolved))
        refused = (key for key in self._submitted.nulls() if key not in self._accepted)
        errors.add_new((key, refused_null(key)) for key in refused)
        errors.add(chain_problems(self._chains, self._plugins.stages), as_is=True)
        errors.add(sql_problems(self._chains, self._plugins, self._connector), as_is=True)
        known = frozenset(each.name for each in ConnectorConfig.settings())
        errors.add_new(
            (key, message)
            for key, message in connector_refusals(props, known | self._own_names())
            if not in_chains(key, self._chains)
        )
        self._check_across()
        self._check_connector()
        self._check_versions()

    def _check_across(self) -> None:
        """Check the settings that every connector has across each other, converters, and clients.

        Some problems hide others, so the checks run again without the wrong keys until they find no more.
        """
        known = -1
        while known < len(self._errors.all_keys()):
            known = len(self._errors.all_keys())
            problems = connector_problems(self._usable(), self._worker, self._converters.problems)
            self._errors.add_new(map(_as_connect, problems))

    def _check_connector(self) -> None:
        self._errors.add_new(connector_version_problems(self._connector, self._props))
        own = tuple(self._hinted(self._connector.problems(self._props)))
        reported = {key for key, _ in self._submitted.problems} | {*self._submitted.nulls()}
        self._errors.add((key, sentence) for key, sentence in own if key not in reported)
        if not own:
            config = ConnectorConfig.parse(self._usable())
            promised = promise_problems(
                self._connector, self._props, config, self._worker, plugins=self._plugins
            )
            self._errors.add(promised, as_is=True)
            self._check_sql()

    def _check_versions(self) -> None:
        """Report at the class, too, that it is not available in the required version."""
        classes = (key for key, each in self._settings.items() if each.type is SettingType.CLASS)
        for key in (*classes, _CLASS):
            for message in self._errors.of(version_key(key)):
                # Kafka Connect reports a range that cannot be read at the class of a transformation, not of a converter.
                if not key.endswith(".converter") or message.startswith("Plugin "):
                    self._errors.add([(key, message)], as_is=True)

    def _check_sql(self) -> None:
        # An example record goes through the chain, and Spark checks the step: all else has to be valid.
        if not self._errors.all_keys():
            stages = chosen_stages(self._chains, self._plugins.stages)
            props = {**self._props, **self._chains}
            problems = sql_stage_problems(self._connector, props, stages, self._sql)
            self._errors.add(problems, as_is=True)

    def _framework_settings(self) -> dict[str, Setting]:
        settings = (
            *(
                in_worker(each, self._props, self._worker, self._converters)
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
        """The properties without the wrong ones, so that one answer can have the errors of the rest, too."""
        wrong = frozenset(self._errors.all_keys())
        usable = {
            key: value
            for key, value in self._props.items()
            if key not in wrong and not in_chains(key, self._chains)
        }
        # Placeholders: these two only have to be present.
        return {_NAME: "it", _CLASS: "its", **usable}

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
