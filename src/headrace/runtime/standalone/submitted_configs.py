"""Configurations as they were submitted, against the resolved ones that run; pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from headrace.observe.hidden import Hidden
from headrace.runtime.herder.answers import ConfigInfos
from headrace.runtime.herder.herder import Config
from headrace.runtime.herder.refusal import refusal

_NOTHING: Final = Hidden()


def patched(config: Config, changes: Config) -> dict[str, str | None]:
    """*config* with *changes* merged into it; ``None`` takes a key out (KIP-477)."""
    merged = {**config, **changes}
    return {key: value for key, value in merged.items() if changes.get(key, "") is not None}


def texts(config: Config) -> dict[str, str]:
    """*config* without the keys whose value is null, which are as good as not there."""
    return {key: value for key, value in config.items() if value is not None}


def unresolved(
    task: Mapping[str, str],
    *,
    submitted: Config,
    resolved: Mapping[str, str],
    hidden: Hidden = _NOTHING,
) -> dict[str, str]:
    """A task's configuration with the connector's placeholders in place of what they stand for.

    What the connector has put together of its secrets holds what is shown in place of the *hidden* ones.
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
        return by_value.get(value) or hidden.masked(value)

    return {key: shown(key, value) for key, value in task.items()}


def refuse_invalid(infos: ConfigInfos) -> None:
    """Raise ``BadRequestError`` with all errors, in Kafka Connect's form, when there are any."""
    problem = refusal(infos)
    if problem is not None:
        raise problem
