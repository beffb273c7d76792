"""Read-only requests, answered from the stores in the caller's thread, with passwords masked."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Final

from headrace.config.connector_config import CONNECTOR_CLASS, KEYS, aliases
from headrace.config.secret_values import is_secret_key
from headrace.connect.setting import HIDDEN, SettingType
from headrace.herder.answers import (
    ConfigInfos,
    ConnectorInfo,
    ConnectorStatus,
    TargetState,
    TaskId,
    TaskInfo,
)
from headrace.herder.errors import BadRequestError, NotFoundError, RequestError, refusal
from headrace.herder.protocol import Config
from headrace.herder.services import ConnectorValidator, LocalServices
from headrace.herder.statuses import connector_status
from headrace.observe.secret_masking import Secrets
from headrace.storage.protocols import StoredConnector

_NOTHING: Final = Secrets()

# Every key of an unknown class may be a password, except these.
_NEVER_SECRET: Final = frozenset({"name", CONNECTOR_CLASS, "tasks.max", "task.class"})


class Passwords:
    """Masks passwords and restores them; does neither unless *are_masked*. Any thread may call."""

    def __init__(self, validator: ConnectorValidator, *, are_masked: bool) -> None:
        self._validator = validator
        self._are_masked = are_masked

    def masked(self, config: Config, *, connector: Config) -> dict[str, str | None]:
        """*config*, the *connector*'s or one of its tasks', with passwords masked."""
        if not self._are_masked:
            return dict(config)
        secret = self._secret_keys(connector, config)
        return {
            key: HIDDEN if key in secret and value is not None else value
            for key, value in config.items()
        }

    def kept(self, config: Config, before: Config | None) -> dict[str, str | None]:
        """*config* with the passwords of *before* where it has ``[hidden]``.

        Raises ``BadRequestError`` where there is none to keep: ``[hidden]`` is never meant as a password.
        """
        if not self._are_masked or HIDDEN not in config.values():
            return dict(config)
        stored = before or {}
        secret = self._secret_keys({**stored, **config}, config)
        asked = [key for key, value in config.items() if value == HIDDEN and key in secret]
        for key in asked:
            if stored.get(key) is None:
                raise BadRequestError(
                    f"Invalid value {HIDDEN} for configuration {key}: the connector has no value yet that "
                    "could be kept; give it one"
                )
        return {**config, **{key: stored[key] for key in asked}}

    def tried(self, config: Config, before: Config | None) -> dict[str, str | None]:
        """As :meth:`kept`, but leaves ``[hidden]`` where there is nothing to keep."""
        stored = before or {}
        known = {key for key, value in config.items() if value != HIDDEN or stored.get(key)}
        found = self.kept({key: config[key] for key in known}, before)
        return {key: found.get(key, value) for key, value in config.items()}

    def _secret_keys(self, connector: Config, config: Config) -> frozenset[str]:
        try:
            settings = self._validator.plugin_settings(connector.get(CONNECTOR_CLASS) or "")
        except RequestError:
            return frozenset(config) - _NEVER_SECRET
        types = {each.name: each.type for each in settings} | dict(self._of_aliases(connector))
        return frozenset(
            key
            for key in config
            if types.get(key) is SettingType.PASSWORD or (key not in types and is_secret_key(key))
        )

    def _of_aliases(self, connector: Config) -> Iterator[tuple[str, SettingType]]:
        """The settings of the connector's transformations and predicates; unknown classes are skipped."""
        texts = {key: value for key, value in connector.items() if value is not None}
        for prefix in (f"{key}.{alias}." for key in KEYS for alias in aliases(key, texts)):
            with suppress(RequestError):
                for each in self._validator.plugin_settings(texts.get(f"{prefix}type", "")):
                    yield f"{prefix}{each.name}", each.type


def patched(config: Config, changes: Config) -> dict[str, str | None]:
    """*config* with *changes* merged into it; ``None`` removes a key (KIP-477)."""
    merged = {**config, **changes}
    return {key: value for key, value in merged.items() if changes.get(key, "") is not None}


def texts(config: Config) -> dict[str, str]:
    """*config* without the keys whose value is null, which count as not set."""
    return {key: value for key, value in config.items() if value is not None}


def unresolved(
    task: Mapping[str, str],
    *,
    submitted: Config,
    resolved: Mapping[str, str],
    secrets: Secrets = _NOTHING,
) -> dict[str, str]:
    """A task's configuration with the connector's placeholders in place of their values.

    In values that the connector has composed of *secrets*, these are masked.
    """
    by_value = {
        resolved[key]: given
        for key, given in submitted.items()
        if given is not None and resolved.get(key, given) != given
    }

    def shown(key: str, value: str) -> str:
        given = submitted.get(key)
        if given is not None and resolved.get(key) == value:
            return given
        return by_value.get(value) or secrets.masked(value)

    return {key: shown(key, value) for key, value in task.items()}


def refuse_invalid(infos: ConfigInfos) -> None:
    """Raise ``BadRequestError`` with all errors, in Kafka Connect's form, if there are any."""
    problem = refusal(infos)
    if problem is not None:
        raise problem


class ConnectorQueries:
    """Answers requests about stored connectors. Any thread may call."""

    def __init__(self, local: LocalServices) -> None:
        self._local = local
        self._passwords = Passwords(local.validator, are_masked=local.masks_passwords)
        # Classes that were found; a missing one may be installed later.
        self._sources = set[str]()

    def names(self) -> Sequence[str]:
        """The names of all connectors."""
        return sorted(self._local.configs.connectors())

    def stored(self, name: str, *, unknown: str = "Connector {} not found") -> StoredConnector:
        """The connector; raises ``NotFoundError`` with the message *unknown* when there is none."""
        stored = self._local.configs.connector(name)
        if stored is None:
            raise NotFoundError(unknown.format(name))
        return stored

    def info(self, name: str) -> ConnectorInfo:
        """The connector as it was submitted."""
        return self.shown(self.stored(name))

    def shown(self, stored: StoredConnector) -> ConnectorInfo:
        """*stored* with the tasks that it has now."""
        return ConnectorInfo(
            name=stored.name,
            config=self._passwords.masked(stored.config, connector=stored.config),
            tasks=[each.id for each in self._tasks(stored)],
            type=self._type(stored),
        )

    def tasks(self, name: str) -> Sequence[TaskInfo]:
        """The connector's tasks with their configurations."""
        return self._tasks(self.stored(name))

    def status(self, name: str) -> ConnectorStatus:
        """The states of the connector and its tasks."""
        stored = self.stored(name, unknown="No status found for connector {}")
        return connector_status(self._local, name, type_=self._type(stored))

    def _tasks(self, stored: StoredConnector) -> list[TaskInfo]:
        if stored.target_state == TargetState.STOPPED:
            return []
        configs = self._local.configs.task_configs(stored.name)
        return [
            TaskInfo(
                id=TaskId(connector=stored.name, task=task),
                config=texts(self._passwords.masked(config, connector=stored.config)),
            )
            for task, config in enumerate(configs)
        ]

    def _type(self, stored: StoredConnector) -> str:
        named = stored.config.get(CONNECTOR_CLASS) or ""
        if named not in self._sources:
            try:
                self._local.validator.plugin_settings(named)
            except RequestError:
                return "unknown"
            self._sources.add(named)
        return "source"
