"""Connectors' configurations, read from the files that a command line names."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from headrace.connect.errors import ConfigError
from headrace.runtime.connector_files import InitialState, read_connector_file


def connector_config(path: Path) -> Mapping[str, str]:
    """The configuration in the file at *path*; raises :class:`~headrace.connect.errors.ConfigError`."""
    file = read_connector_file(path)
    if file.initial_state is not InitialState.RUNNING:
        sentence = f"{file.initial_state} is not supported yet; leave it out."
        raise ConfigError([("initial_state", sentence)], where=str(path))
    return file.config
