"""Secrets in a connector's submitted configuration: passwords masked in answers, placeholders shown in tasks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Final

from headrace.config.connector_config import CONNECTOR_CLASS, KEYS, aliases
from headrace.config.secret_values import is_secret_key
from headrace.connect.setting import HIDDEN, SettingType
from headrace.herder.errors import BadRequestError, RequestError
from headrace.herder.protocol import Config
from headrace.herder.services import ConnectorValidator
from headrace.observe.secret_masking import Secrets

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
