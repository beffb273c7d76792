"""Connectors that a command line names, beside those that are stored."""

from __future__ import annotations

import logging
from collections.abc import Iterable

from headrace.runtime.herder.errors import AlreadyExistsError
from headrace.runtime.herder.herder import Herder
from headrace.runtime.herder.requests import CreateRequest
from headrace.runtime.herder.states import TargetState
from headrace.runtime.settings.connector_files import ConnectorFile

_log = logging.getLogger(__name__)


def take_in(files: Iterable[ConnectorFile], herder: Herder) -> None:
    """Create each connector, in order, or replace the configuration of one that is stored already.

    Raises :class:`~headrace.runtime.herder.errors.RequestError` at the first one that is refused.
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
        # The same command was killed while it created the connector, which is finished when Kafka is reached.
        return False
    return True


def _put(file: ConnectorFile, herder: Herder) -> None:
    has_beginning = (
        file.initial_offsets is not None or file.initial_state is not TargetState.RUNNING
    )
    if has_beginning:
        _log.info(
            "Connector %s is stored already: its initial_state and initial_offsets are ignored.",
            file.name,
        )
    if herder.info(file.name).config != file.config:
        herder.put_config(file.name, file.config)
