"""`headrace connectors`: lists, creates, changes, pauses, restarts and deletes a worker's connectors."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

import click
import msgspec

from headrace.cli.offset_files import Entry, read_offsets, sent
from headrace.cli.table import one_line, table
from headrace.cli.worker_options import CommandContext, completed_names, with_worker
from headrace.config.config_files import ConnectorFile, read_connector_file
from headrace.config.connector_config import CONNECTOR_CLASS
from headrace.herder.answers import TargetState
from headrace.herder.requests import OffsetChange


class StateInfo(msgspec.Struct, frozen=True):
    """The state of a connector, or of a task, which has an *id*."""

    state: str
    worker_id: str
    id: int | None = None
    version: str | None = None
    trace: str | None = None


class Status(msgspec.Struct, frozen=True):
    """``GET /connectors/{name}/status``."""

    name: str
    connector: StateInfo
    tasks: Sequence[StateInfo]


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
    yield from table(("connector", "state", "tasks", "class"), rows)


def restart_lines(now: Status, plan: Status | None) -> Iterator[str]:
    """The result of a restart: the answered *plan*, if any, and what follows from the status *now*."""
    if plan is not None:
        yield from status_lines(plan)
        yield ""
    name, state = one_line(now.name), now.connector.state
    if state in ("STOPPED", "PAUSED"):
        yield (
            f"Connector {name} stays {state}: it is not restarted. Start it with 'headrace connectors "
            f"resume {shlex.quote(name)}'."
        )
    elif plan is not None and not any(_restarts(each) for each in (plan.connector, *plan.tasks)):
        yield f"Nothing of connector {name} is restarted: none of the selected parts has failed."
    else:
        yield f"Connector {name} is restarted."


def status_lines(found: Status) -> Iterator[str]:
    """The states of the connector and its tasks, with the traces of failures."""
    own = found.connector
    yield one_line(f"{found.name} is {own.state} on {own.worker_id}.")
    if found.tasks:
        yield ""
        rows = [(str(each.id), each.state, each.worker_id) for each in found.tasks]
        yield from table(("task", "state", "worker"), rows)
    for each in (own, *found.tasks):
        if each.trace:
            yield ""
            yield f"{'connector' if each.id is None else f'task {each.id}'}:"
            # A trace keeps its lines.
            yield from map(one_line, each.trace.rstrip().splitlines())


def config_lines(config: Mapping[str, str | None]) -> Iterator[str]:
    """One line for each key, as in a properties file."""
    for key, value in sorted(config.items()):
        yield one_line(f"{key}={'' if value is None else value}")


def creation_lines(created: Info, *, dry_run: bool) -> Iterator[str]:
    """The result of a creation, or of its dry run."""
    name = one_line(created.name)
    if dry_run:
        yield f"Dry run: connector {name} would be created; its configuration is valid."
    else:
        yield f"Connector {name} is created."
    if created.initial_offsets_response:
        yield created.initial_offsets_response


def _restarts(info: StateInfo) -> bool:
    return info.state == "RESTARTING"


def _tasks(status: Status) -> str:
    counted = Counter(each.state for each in status.tasks)
    return ", ".join(f"{count} {state}" for state, count in sorted(counted.items())) or "-"


def _class(info: Info) -> str:
    return info.config.get(CONNECTOR_CLASS) or "-"


_FILE = click.Path(path_type=Path)


@click.group()
def connectors() -> None:
    """List and change the connectors of a running worker."""


@connectors.command("list")
@with_worker
def list_all(context: CommandContext) -> None:
    """List the connectors, with their states."""
    answer = context.worker.get("connectors", expand=["status", "info"])
    context.show(answer, list_lines(context.worker.understood(answer, dict[str, Listed])))


@connectors.command()
@with_worker
@click.argument("file", type=_FILE)
@click.option(
    "--state",
    type=click.Choice([each.value for each in TargetState], case_sensitive=False),
    help="Its initial state, instead of the one in FILE.",
)
@click.option(
    "--offsets",
    type=_FILE,
    help="Its initial offsets, instead of those in FILE: an export, or a Java worker's offsets file.",
)
@click.option("--of", metavar="CONNECTOR", help="The connector in a Java worker's offsets file.")
@click.option("--dry-run", is_flag=True, help="Create nothing; show what would be created.")
def create(
    context: CommandContext,
    file: Path,
    *,
    state: str | None,
    offsets: Path | None,
    of: str | None,
    dry_run: bool,
) -> None:
    """Create the connector that FILE describes: JSON or properties, as for 'headrace run'."""
    found = read_connector_file(file)
    wanted = found.initial_offsets
    if offsets is not None:
        wanted = read_offsets(offsets, of or found.name).offsets
    body = _creation(found, state, wanted)
    request = context.worker.request_dry_run if dry_run else context.worker.request
    answer = request("POST", "connectors", body=body)
    info = context.worker.understood(answer, Info)
    context.show(answer, creation_lines(info, dry_run=dry_run))


@connectors.command()
@with_worker
@click.argument("name", shell_complete=completed_names)
def status(context: CommandContext, name: str) -> None:
    """Show the states of connector NAME and its tasks, with the traces of failures."""
    answer = context.worker.get("connectors", name, "status")
    context.show(answer, status_lines(context.worker.understood(answer, Status)))


@connectors.command()
@with_worker
@click.argument("name", shell_complete=completed_names)
@click.option("--file", type=_FILE, help="Replace the configuration by the one in this file.")
@click.option("--set", "changes", metavar="KEY=VALUE", multiple=True, help="Change one key.")
@click.option("--unset", "removed", metavar="KEY", multiple=True, help="Remove one key.")
def config(
    context: CommandContext,
    name: str,
    *,
    file: Path | None,
    changes: Sequence[str],
    removed: Sequence[str],
) -> None:
    """Show the configuration of connector NAME, or change it.

    A secret does not belong on a command line: write a placeholder, or use --file.
    """
    path = ("connectors", name, "config")
    if file is not None:
        if changes or removed:
            raise click.UsageError("Use either --file, or --set and --unset.")
        answer = context.worker.request("PUT", *path, body=dict(read_connector_file(file).config))
    elif changes or removed:
        patch = {**dict(map(_pair, changes)), **dict.fromkeys(removed)}
        answer = context.worker.request("PATCH", *path, body=patch)
    else:
        answer = context.worker.get(*path)
        context.show(answer, config_lines(context.worker.understood(answer, dict[str, str | None])))
        return
    context.show(answer, config_lines(context.worker.understood(answer, Info).config))


@connectors.command()
@with_worker
@click.argument("name", shell_complete=completed_names)
@click.option("--include-tasks", is_flag=True, help="Its tasks as well.")
@click.option("--only-failed", is_flag=True, help="Only the parts that have failed.")
@click.option("--task", type=click.IntRange(min=0), help="Only this task.")
def restart(
    context: CommandContext, name: str, *, include_tasks: bool, only_failed: bool, task: int | None
) -> None:
    """Restart connector NAME."""
    path = ("connectors", name, "restart")
    query = dict[str, str]()
    if task is not None:
        if include_tasks or only_failed:
            raise click.UsageError("Use either --task, or --include-tasks and --only-failed.")
        path = ("connectors", name, "tasks", str(task), "restart")
    elif include_tasks or only_failed:
        query = {
            "includeTasks": str(include_tasks).lower(),
            "onlyFailed": str(only_failed).lower(),
        }
    answer = context.worker.request("POST", *path, query=query)
    plan = None if answer is None else context.worker.understood(answer, Status)
    now = context.worker.understood(context.worker.get("connectors", name, "status"), Status)
    context.show(answer, restart_lines(now, plan))


@connectors.command()
@with_worker
@click.argument("name", shell_complete=completed_names)
def delete(context: CommandContext, name: str) -> None:
    """Stop connector NAME and delete it; its offsets stay, for a later connector of that name."""
    answer = context.worker.request("DELETE", "connectors", name)
    context.show(answer, [f"Connector {name} is deleted."])


def _wanting(word: str, state: TargetState) -> Callable[..., None]:
    @with_worker
    @click.argument("name", shell_complete=completed_names)
    def want(context: CommandContext, name: str) -> None:
        answer = context.worker.request("PUT", "connectors", name, word)
        context.show(answer, [f"Target state of connector {name}: {state}."])

    return want


for _word, _state, _meaning in (
    (
        "pause",
        TargetState.PAUSED,
        "Pause connector NAME until it is resumed; its tasks stay.",
    ),
    ("resume", TargetState.RUNNING, "Resume connector NAME where it was."),
    (
        "stop",
        TargetState.STOPPED,
        "Stop the tasks of connector NAME, so that its offsets can be changed.",
    ),
):
    connectors.command(_word, help=_meaning)(_wanting(_word, _state))


def _creation(
    file: ConnectorFile, state: str | None, offsets: Sequence[Entry | OffsetChange] | None
) -> Mapping[str, object]:
    body: dict[str, object] = {"name": file.name, "config": dict(file.config)}
    wanted = state or file.initial_state.value
    # Kafka Connect supports the field since 3.7 only.
    if wanted != TargetState.RUNNING.value:
        body["initial_state"] = wanted
    if offsets is not None:
        body["initial_offsets"] = sent(offsets)
    return body


def _pair(given: str) -> tuple[str, str]:
    key, separator, value = given.partition("=")
    if not separator or not key:
        # Not repeated: it may be a secret.
        raise click.BadParameter("it is not KEY=VALUE.", param_hint="--set")
    return key, value
