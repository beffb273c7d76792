"""Connectors' passwords in what is answered and asked, where the worker masks them (``rest.mask.passwords``)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from typing import Final

from headrace.connect.setting_type import HIDDEN, SettingType
from headrace.runtime.herder.admission import Admission
from headrace.runtime.herder.errors import BadRequestError, RequestError
from headrace.runtime.herder.herder import Config
from headrace.runtime.settings.secret_keys import is_secret_key
from headrace.runtime.settings.stage_settings import KEYS, aliases

_CLASS: Final = "connector.class"
# Of a class that cannot be found nobody knows which keys are passwords; these are none.
_NEVER_SECRET: Final = frozenset({"name", _CLASS, "tasks.max", "task.class"})


class Passwords:
    """Masks passwords and puts them back; does neither unless *are_masked*. Any thread may call."""

    def __init__(self, admission: Admission, *, are_masked: bool) -> None:
        self._admission = admission
        self._are_masked = are_masked

    def masked(self, config: Config, *, connector: Config) -> dict[str, str | None]:
        """*config*, the *connector*'s or a task's of it, as it may be shown."""
        if not self._are_masked:
            return dict(config)
        secret = self._secret_keys(connector, config)
        return {
            key: HIDDEN if key in secret and value is not None else value
            for key, value in config.items()
        }

    def kept(self, config: Config, before: Config | None) -> dict[str, str | None]:
        """*config* with the passwords of *before* where it has ``[hidden]``.

        Raises ``BadRequestError`` where there is none to keep: nobody means these words to be the password.
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
        """As :meth:`kept`, with ``[hidden]`` left as it is where there is nothing to keep."""
        stored = before or {}
        known = {key for key, value in config.items() if value != HIDDEN or stored.get(key)}
        found = self.kept({key: config[key] for key in known}, before)
        return {key: found.get(key, value) for key, value in config.items()}

    def _secret_keys(self, connector: Config, config: Config) -> frozenset[str]:
        try:
            settings = self._admission.plugin_settings(connector.get(_CLASS) or "")
        except RequestError:
            return frozenset(config) - _NEVER_SECRET
        types = {each.name: each.type for each in settings} | dict(self._of_aliases(connector))
        return frozenset(
            key
            for key in config
            if types.get(key) is SettingType.PASSWORD or (key not in types and is_secret_key(key))
        )

    def _of_aliases(self, connector: Config) -> Iterator[tuple[str, SettingType]]:
        """The settings of the connector's transformations and predicates; of a class that is none, nothing."""
        texts = {key: value for key, value in connector.items() if value is not None}
        for prefix in (f"{key}.{alias}." for key in KEYS for alias in aliases(key, texts)):
            with suppress(RequestError):
                for each in self._admission.plugin_settings(texts.get(f"{prefix}type", "")):
                    yield f"{prefix}{each.name}", each.type
