"""Connectors that a command line names: created, or given their configuration from there."""

from __future__ import annotations

import logging
from collections.abc import Iterable

from headrace.config.config_files import ConnectorFile
from headrace.herder.answers import TargetState
from headrace.herder.errors import AlreadyExistsError
from headrace.herder.protocol import Herder
from headrace.herder.requests import CreateRequest

_log = logging.getLogger(__name__)


def create_or_update(files: Iterable[ConnectorFile], herder: Herder) -> None:
    """Create each connector, in order, or replace the configuration of one that is already stored.

    Raises :class:`~headrace.herder.errors.RequestError` at the first one that is refused.
    """
    stored = set(herder.connectors())
    for file in files:
        if file.name in stored or not _created(file, herder):
            _put(file, herder)


def _created(file: ConnectorFile, herder: Herder) -> bool:
    try:
        herder.create(
            CreateRequest(
                name=file.name,
                config=file.config,
                initial_state=file.initial_state,
                initial_offsets=file.initial_offsets,
            )
        )
    except AlreadyExistsError:
        # An earlier run was killed while it created the connector; the creation is completed once Kafka is reached.
        return False
    return True


def _put(file: ConnectorFile, herder: Herder) -> None:
    has_initial_settings = (
        file.initial_offsets is not None or file.initial_state is not TargetState.RUNNING
    )
    if has_initial_settings:
        _log.info(
            "Connector %s is already stored: its initial_state and initial_offsets are ignored.",
            file.name,
        )
    if herder.info(file.name).config != file.config:
        herder.put_config(file.name, file.config)
