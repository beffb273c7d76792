"""Everything there is to say about a connector's configuration."""

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
from headrace.plugins.sql_step import SqlJudge, between_problems, no_judge, sql_problems
from headrace.plugins.transforms import (
    chain_problems,
    chain_props,
    chain_settings,
    chosen_stages,
    in_chains,
    shown_class,
)
from headrace.plugins.validation_errors import Reading, ValidationErrors, reading, refused_null
from headrace.plugins.versions import asking_key, connector_version_problems

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

    *sql* knows expressions. Asks the connector's hooks, which are pure, and no broker; raises what they raise.
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
        self._complaints = ValidationErrors(defined, submitted)

    def infos(self) -> ConfigInfos:
        """The answer."""
        self._complain()
        own = [*self._undefined(), *map(self._checked, self._settings)]
        given, complaints = self._submitted.resolved, self._complaints
        appended = [
            each
            for part in self._sections
            for each in section_keys(part, given, complaints)
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

    def _complain(self) -> None:
        props, complaints = self._props, self._complaints
        complaints.add(self._submitted.problems)
        read = ((name, told) for name, found in self._readings.items() for told in found.errors)
        complaints.add_new(self._hinted(read))
        for part in self._sections:
            complaints.add_new(section_problems(part, self._submitted.resolved))
        refused = (key for key in self._submitted.nulls() if key not in self._accepted)
        complaints.add_new((key, refused_null(key)) for key in refused)
        complaints.add(chain_problems(self._chains, self._plugins), as_they_are=True)
        complaints.add(sql_problems(self._chains, self._plugins, self._connector), as_they_are=True)
        known = frozenset(each.name for each in ConnectorConfig.settings())
        complaints.add_new(
            (key, told)
            for key, told in connector_refusals(props, known | self._own_names())
            if not in_chains(key, self._chains)
        )
        self._complain_across()
        self._complain_of_connector()
        self._complain_of_versions()

    def _complain_across(self) -> None:
        """What is wrong between the settings that every connector has, with converters, and with clients.

        Some of it hides the rest: so it is asked again without what is wrong, until there is no more.
        """
        known = -1
        while known < len(self._complaints.all_keys()):
            known = len(self._complaints.all_keys())
            problems = connector_problems(self._usable(), self._worker, self._converters.problems)
            self._complaints.add_new(map(_as_connect, problems))

    def _complain_of_connector(self) -> None:
        self._complaints.add_new(connector_version_problems(self._connector, self._props))
        own = tuple(self._hinted(self._connector.problems(self._props)))
        told = {key for key, _ in self._submitted.problems} | {*self._submitted.nulls()}
        self._complaints.add((key, sentence) for key, sentence in own if key not in told)
        if not own:
            config = ConnectorConfig.parse(self._usable())
            asked = promise_problems(
                self._connector, self._props, config, self._worker, plugins=self._plugins
            )
            self._complaints.add(asked, as_they_are=True)
            self._complain_of_sql()

    def _complain_of_versions(self) -> None:
        """Report at the class, too, that it is not there in the version that is asked for."""
        classes = (key for key, each in self._settings.items() if each.type is SettingType.CLASS)
        for key in (*classes, _CLASS):
            for told in self._complaints.of(asking_key(key)):
                # Kafka Connect reports a range that cannot be read at the class of a transformation, not of a converter.
                if not key.endswith(".converter") or told.startswith("Plugin "):
                    self._complaints.add([(key, told)], as_they_are=True)

    def _complain_of_sql(self) -> None:
        # An example of a record goes through the chain, and Spark is asked: both have to be valid otherwise.
        if not self._complaints.all_keys():
            stages = chosen_stages(self._chains, self._plugins)
            props = {**self._props, **self._chains}
            problems = between_problems(self._connector, props, stages, self._sql)
            self._complaints.add(problems, as_they_are=True)

    def _framework_settings(self) -> dict[str, Setting]:
        settings = (
            *(
                in_worker(each, self._props, self._worker, self._converters)
                for each in framework_settings(connector_version(type(self._connector)))
            ),
            *chain_settings(self._chains, self._plugins),
        )
        return {each.name: each for each in settings}

    def _own_names(self) -> frozenset[str]:
        return frozenset(each.name for each in self._connector.config_class.settings())

    def _hinted(self, problems: Iterable[Problem]) -> Iterator[Problem]:
        """*problems*, with the keys that no setting has and that may be meant; most of those are misspelt."""
        given = self._submitted.given
        prefixes = tuple(part.prefix for part in self._sections)
        unknown = (
            key for key in given if key not in self._settings and not key.startswith(prefixes)
        )
        return hinted(problems, given, unknown)

    def _usable(self) -> dict[str, str]:
        """What is left without what is wrong, so that the rest can be judged in the same answer."""
        wrong = frozenset(self._complaints.all_keys())
        usable = {
            key: value
            for key, value in self._props.items()
            if key not in wrong and not in_chains(key, self._chains)
        }
        # Whatever stands for these: only that they are there counts.
        return {_NAME: "it", _CLASS: "its", **usable}

    def _undefined(self) -> Iterator[CheckedKey]:
        prefixes = tuple(part.prefix for part in self._sections)
        for key in self._complaints.all_keys():
            if key not in self._settings and not key.startswith(prefixes):
                there = self._submitted.given.get(key) is not None
                value = self._complaints.value_of(key) if there else None
                yield _checked(None, key, value, self._complaints)

    def _checked(self, name: str) -> CheckedKey:
        setting = self._settings[name]
        text = self._text(setting, self._readings[name])
        if name in self._framework and self._is_lost(name):
            text = None
        return _checked(setting, name, text, self._complaints)

    def _text(self, setting: Setting, found: Reading) -> str | None:
        text = value_text(found.value, setting.type)
        if not text:
            return text
        if setting.name in {f"{role}.converter" for role in ROLES}:
            return self._converters.full_name(text)
        return shown_class(setting.name, self._chains, self._plugins) or text

    def _is_lost(self, name: str) -> bool:
        """Whether a class that cannot be found has no value."""
        return self._settings[name].type is SettingType.CLASS and any(
            each.endswith("could not be found.") for each in self._complaints.of(name)
        )

    def _unresolved(self, checked: CheckedKey) -> CheckedKey:
        """What was put in place of a placeholder is a secret: shown is what was submitted."""
        value = checked.value
        given = self._submitted.given.get(value.name)
        if given == self._submitted.resolved.get(value.name) or value.value in (None, HIDDEN):
            return checked
        return replace(checked, value=replace(value, value=given))


def _with_groups_as_given(submitted: Resolution) -> dict[str, str]:
    """Resolved, but for the names of groups: keys are made of them, and would show what a placeholder stands for."""
    props, given = submitted.props(), submitted.given.get(GROUPS)
    return props if given is None or GROUPS not in props else {**props, GROUPS: given}


def _checked(
    setting: Setting | None, name: str, text: str | None, complaints: ValidationErrors
) -> CheckedKey:
    recommended = () if setting is None else setting.recommended
    return CheckedKey(
        definition=setting,
        value=ConfigValue(
            name=name, value=text, errors=complaints.of(name), recommended=recommended
        ),
    )


def _as_connect(problem: Problem) -> Problem:
    """Without the choices behind Kafka Connect's own sentence: they are the key's recommended values."""
    key, sentence = problem
    told, found, _ = sentence.partition(" could not be found.")
    return key, f"{told}{found}" if told.startswith("Class ") else sentence
