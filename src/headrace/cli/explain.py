"""`headrace explain`: what a connector would read next, and why not the rest. Nothing is written."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import click

from headrace.admission import Admitted, admitted, checked_worker
from headrace.cli.configurations import connector_config
from headrace.cli.explained_table import explained_lines
from headrace.cli.stored_offsets import stored_offsets
from headrace.connect.connector import PlannedConnector, PlanRequest
from headrace.connect.errors import TaskFailedError
from headrace.connect.explained import Explained
from headrace.connect.partition import KnownOffsets, SourceOffset, SourcePartition
from headrace.observe.hidden import Hidden, kept_secret
from headrace.observe.logs import configure_logging
from headrace.runtime.offset_desk import OffsetSnapshot
from headrace.runtime.settings.connector_config import ConnectorConfig
from headrace.runtime.settings.connector_files import read_worker_file
from headrace.runtime.settings.state_file import state_path

WOULD_FAIL = 1


@dataclass(frozen=True, slots=True)
class _Context:
    """A connector's context; there is nobody who could plan anew."""

    offsets: KnownOffsets

    def request_task_reconfiguration(self) -> None:
        """Nothing to do."""

    def raise_error(self, error: Exception) -> None:
        """Raise it on the spot."""
        raise error


@click.command()
@click.argument("worker_config", type=click.Path(path_type=Path))
@click.argument(
    "connector_config_file", metavar="CONNECTOR_CONFIG", type=click.Path(path_type=Path)
)
def explain(worker_config: Path, connector_config_file: Path) -> int:
    """Show what the connector of CONNECTOR_CONFIG would read next: by which slot, to which topic.

    What it leaves alone is shown with the reason. Source offsets are looked up where the worker keeps them;
    nothing is written, no topic is made, and a worker may be running. Ends with 0, or with 1 when the connector
    would fail.
    """
    configure_logging("WARNING")
    config = checked_worker(
        read_worker_file(worker_config),
        where=str(worker_config),
        folder=worker_config.absolute().parent,
    )
    found = admitted(connector_config(connector_config_file), config)
    state_file = state_path(config, worker_config.absolute(), os.environ)
    settings = ConnectorConfig.parse(found.props)
    stored = stored_offsets(config, state_file, settings)
    if stored.told:
        click.echo(f"headrace: {stored.told}", err=True)
    slots = min(settings.tasks_max, config.slots)
    with kept_secret(Hidden(values=found.secrets)):
        rows = explained(found, stored.offsets, slots=slots)
    for line in explained_lines(found.name, rows, slots=slots):
        click.echo(line)
    return WOULD_FAIL if any(each.fails for each in rows) else 0


def explained(
    found: Admitted, offsets: Mapping[SourcePartition, SourceOffset], *, slots: int
) -> Sequence[Explained]:
    """What the connector would do with each of its objects.

    Raises :class:`~headrace.connect.errors.TaskFailedError` for a polled connector, and what the connector
    raises.
    """
    connector = found.connector
    if not isinstance(connector, PlannedConnector):
        raise TaskFailedError(
            f"Connector {found.name} does not plan: only its running tasks find out what there is to read."
        )
    seen = OffsetSnapshot(offsets)
    connector.initialize(_Context(seen))
    try:
        connector.start(found.props)
        return list(connector.explain(PlanRequest(slots=slots, offsets=seen)))
    finally:
        connector.stop()
