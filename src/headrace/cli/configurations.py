"""Connectors' configurations, read from the files that a command line names."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from headrace.connect.errors import ConfigError
from headrace.runtime.herder.states import TargetState
from headrace.runtime.settings.connector_files import read_connector_file


def connector_config(path: Path) -> Mapping[str, str]:
    """The configuration in the file at *path*, for whoever only reads it once.

    Raises :class:`~headrace.connect.errors.ConfigError`, also for a state or for offsets to begin with.
    """
    file = read_connector_file(path)
    problems = list[tuple[str, str]]()
    if file.initial_state is not TargetState.RUNNING:
        told = f"{file.initial_state} has no effect without a worker that stays; leave it out."
        problems.append(("initial_state", told))
    if file.initial_offsets is not None:
        told = "They have no effect without a worker that stays; leave them out."
        problems.append(("initial_offsets", told))
    if problems:
        raise ConfigError(problems, where=str(path))
    return file.config
