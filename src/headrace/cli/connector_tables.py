"""Connectors, their states and configurations as a worker answers them, and for people. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

import msgspec

from headrace.cli.table import one_line, table_lines


class Standing(msgspec.Struct, frozen=True):
    """The state of a connector, or of a task, which has an *id*."""

    state: str
    worker_id: str
    id: int | None = None
    version: str | None = None
    trace: str | None = None


class Status(msgspec.Struct, frozen=True):
    """``GET /connectors/{name}/status``."""

    name: str
    connector: Standing
    tasks: Sequence[Standing]


class Info(msgspec.Struct, frozen=True):
    """A connector, with KIP-995's sentence when it was created with offsets."""

    name: str
    config: Mapping[str, str | None]
    initial_offsets_response: str | None = None


class Listed(msgspec.Struct, frozen=True):
    """One of ``GET /connectors?expand=status&expand=info``."""

    info: Info
    status: Status


def list_lines(found: Mapping[str, Listed]) -> Iterator[str]:
    """One line for each connector."""
    if not found:
        yield "There are no connectors."
        return
    rows = [
        (name, each.status.connector.state, _tasks(each.status), _class(each.info))
        for name, each in sorted(found.items())
    ]
    yield from _table([("connector", "state", "tasks", "class"), *rows])


def restart_lines(found: Status) -> list[str]:
    """What a restart has come to, with the connector as it is afterwards: only one that may run is restarted."""
    state = found.connector.state
    if state in ("STOPPED", "PAUSED"):
        told = f"Connector {found.name} stays {state}: it is not restarted."
        return [f"{told} Let it run with 'headrace connectors resume {found.name}'."]
    return [f"Connector {found.name} is restarted."]


def status_lines(found: Status) -> Iterator[str]:
    """The connector, its tasks, and why they have failed."""
    own = found.connector
    yield one_line(f"{found.name} is {own.state} on {own.worker_id}.")
    if found.tasks:
        yield ""
        rows = [(str(each.id), each.state, each.worker_id) for each in found.tasks]
        yield from _table([("task", "state", "worker"), *rows])
    for each in (own, *found.tasks):
        if each.trace:
            yield ""
            yield f"{'connector' if each.id is None else f'task {each.id}'}:"
            # A trace has many lines on purpose.
            yield from map(one_line, each.trace.rstrip().splitlines())


def config_lines(config: Mapping[str, str | None]) -> Iterator[str]:
    """One line for each key, as a properties file has them."""
    for key, value in sorted(config.items()):
        yield one_line(f"{key}={'' if value is None else value}")


def creation_lines(created: Info, *, dry_run: bool) -> Iterator[str]:
    """What became of a creation, or would."""
    name = one_line(created.name)
    if dry_run:
        yield f"Dry run: connector {name} would be created; its configuration is valid."
    else:
        yield f"Connector {name} is created."
    if created.initial_offsets_response:
        yield created.initial_offsets_response


def _tasks(status: Status) -> str:
    counted = Counter(each.state for each in status.tasks)
    return ", ".join(f"{count} {state}" for state, count in sorted(counted.items())) or "-"


def _class(info: Info) -> str:
    return info.config.get("connector.class") or "-"


def _table(rows: Sequence[Sequence[str]]) -> Iterator[str]:
    return table_lines([[one_line(cell) for cell in row] for row in rows])
