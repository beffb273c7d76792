"""Connectors, their states and configurations as a worker answers them, and for people. Pure."""

from __future__ import annotations

import shlex
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


def restart_lines(now: Status, plan: Status | None) -> Iterator[str]:
    """What a restart has come to: *plan*, if it was answered, and what the connector is *now* allows."""
    if plan is not None:
        yield from status_lines(plan)
        yield ""
    name, state = one_line(now.name), now.connector.state
    if state in ("STOPPED", "PAUSED"):
        yield (
            f"Connector {name} stays {state}: it is not restarted. Let it run with 'headrace connectors "
            f"resume {shlex.quote(name)}'."
        )
    elif plan is not None and not any(_restarts(each) for each in (plan.connector, *plan.tasks)):
        yield f"Nothing of connector {name} is restarted: nothing that was chosen has failed."
    else:
        yield f"Connector {name} is restarted."


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


def _restarts(standing: Standing) -> bool:
    return standing.state == "RESTARTING"


def _tasks(status: Status) -> str:
    counted = Counter(each.state for each in status.tasks)
    return ", ".join(f"{count} {state}" for state, count in sorted(counted.items())) or "-"


def _class(info: Info) -> str:
    return info.config.get("connector.class") or "-"


def _table(rows: Sequence[Sequence[str]]) -> Iterator[str]:
    return table_lines([[one_line(cell) for cell in row] for row in rows])
