"""Values of configurations that come from JSON or Python: text, whatever they were."""

from __future__ import annotations

from collections.abc import Mapping

from headrace.connect.errors import ConfigError


def config_texts(found: Mapping[str, object], *, where: str) -> dict[str, str]:
    """*found* with numbers and booleans as the text that Kafka Connect's JSON has for them. Pure.

    Raises :class:`~headrace.connect.errors.ConfigError` with every value that is none of these.
    """
    problems = [(key, _unfit(value)) for key, value in found.items() if not _is_scalar(value)]
    if problems:
        raise ConfigError(problems, where=where)
    return {key: _as_text(value) for key, value in found.items()}


def _is_scalar(value: object) -> bool:
    return isinstance(value, str | bool | int | float)


def _unfit(value: object) -> str:
    if value is None:
        return "Null value can not be supplied as the configuration value."
    return "A configuration value must be a string, a number or a boolean."


def _as_text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
