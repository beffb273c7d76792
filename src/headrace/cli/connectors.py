"""`headrace connectors`: lists, creates, changes, pauses and deletes the connectors of a worker."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import click

from headrace.cli.asking import Asking, asks_worker
from headrace.cli.completed_names import completed_names
from headrace.cli.connector_tables import (
    Info,
    Listed,
    Status,
    config_lines,
    creation_lines,
    list_lines,
    restart_lines,
    status_lines,
)
from headrace.cli.offset_answers import Entry, sent
from headrace.cli.offset_files import read_offsets
from headrace.runtime.herder.requests import OffsetChange
from headrace.runtime.herder.states import TargetState
from headrace.runtime.settings.connector_files import ConnectorFile, read_connector_file

_FILE = click.Path(path_type=Path)


@click.group()
def connectors() -> None:
    """See and change the connectors of a worker that runs."""


@connectors.command("list")
@asks_worker
def list_all(asking: Asking) -> None:
    """List the connectors, with their states."""
    answer = asking.worker.get("connectors", expand=["status", "info"])
    asking.show(answer, list_lines(asking.worker.understood(answer, dict[str, Listed])))


@connectors.command()
@asks_worker
@click.argument("file", type=_FILE)
@click.option(
    "--state",
    type=click.Choice([each.value for each in TargetState], case_sensitive=False),
    help="How it begins, if not as FILE says.",
)
@click.option(
    "--offsets",
    type=_FILE,
    help="Where it begins, if not as FILE says: an export, or a Java worker's offsets file.",
)
@click.option("--of", metavar="CONNECTOR", help="Whose offsets in a Java worker's file.")
@click.option("--dry-run", is_flag=True, help="Make nothing; tell what would become of it.")
def create(
    asking: Asking,
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
    ask = asking.worker.try_out if dry_run else asking.worker.ask
    answer = ask("POST", "connectors", body=body)
    info = asking.worker.understood(answer, Info)
    asking.show(answer, creation_lines(info, dry_run=dry_run))


@connectors.command()
@asks_worker
@click.argument("name", shell_complete=completed_names)
def status(asking: Asking, name: str) -> None:
    """Show how connector NAME and its tasks are, with the trace of what has failed."""
    answer = asking.worker.get("connectors", name, "status")
    asking.show(answer, status_lines(asking.worker.understood(answer, Status)))


@connectors.command()
@asks_worker
@click.argument("name", shell_complete=completed_names)
@click.option("--file", type=_FILE, help="Replace the configuration by the one in this file.")
@click.option("--set", "changes", metavar="KEY=VALUE", multiple=True, help="Change one key.")
@click.option("--unset", "removed", metavar="KEY", multiple=True, help="Take one key out.")
def config(
    asking: Asking, name: str, *, file: Path | None, changes: Sequence[str], removed: Sequence[str]
) -> None:
    """Show the configuration of connector NAME, or change it.

    A secret does not belong on a command line: write a placeholder, or use --file.
    """
    path = ("connectors", name, "config")
    if file is not None:
        if changes or removed:
            raise click.UsageError("Either --file, or --set and --unset.")
        answer = asking.worker.ask("PUT", *path, body=dict(read_connector_file(file).config))
    elif changes or removed:
        patch = {**dict(map(_pair, changes)), **dict.fromkeys(removed)}
        answer = asking.worker.ask("PATCH", *path, body=patch)
    else:
        answer = asking.worker.get(*path)
        asking.show(answer, config_lines(asking.worker.understood(answer, dict[str, str | None])))
        return
    asking.show(answer, config_lines(asking.worker.understood(answer, Info).config))


@connectors.command()
@asks_worker
@click.argument("name", shell_complete=completed_names)
@click.option("--include-tasks", is_flag=True, help="Its tasks, too.")
@click.option("--only-failed", is_flag=True, help="Only what has failed.")
@click.option("--task", type=click.IntRange(min=0), help="Only this task.")
def restart(
    asking: Asking, name: str, *, include_tasks: bool, only_failed: bool, task: int | None
) -> None:
    """Restart connector NAME."""
    path = ("connectors", name, "restart")
    query = dict[str, str]()
    if task is not None:
        if include_tasks or only_failed:
            raise click.UsageError("Either --task, or --include-tasks and --only-failed.")
        path = ("connectors", name, "tasks", str(task), "restart")
    elif include_tasks or only_failed:
        query = {
            "includeTasks": str(include_tasks).lower(),
            "onlyFailed": str(only_failed).lower(),
        }
    answer = asking.worker.ask("POST", *path, query=query)
    plan = None if answer is None else asking.worker.understood(answer, Status)
    now = asking.worker.understood(asking.worker.get("connectors", name, "status"), Status)
    asking.show(answer, restart_lines(now, plan))


@connectors.command()
@asks_worker
@click.argument("name", shell_complete=completed_names)
def delete(asking: Asking, name: str) -> None:
    """Stop connector NAME and forget it; its offsets stay, for another one of its name."""
    answer = asking.worker.ask("DELETE", "connectors", name)
    asking.show(answer, [f"Connector {name} is deleted."])


def _wanting(word: str, state: TargetState) -> Callable[..., None]:
    @asks_worker
    @click.argument("name", shell_complete=completed_names)
    def want(asking: Asking, name: str) -> None:
        answer = asking.worker.ask("PUT", "connectors", name, word)
        asking.show(answer, [f"Connector {name} shall be {state}."])

    return want


for _word, _state, _meaning in (
    (
        "pause",
        TargetState.PAUSED,
        "Let connector NAME read no more until it is resumed; its tasks stay.",
    ),
    ("resume", TargetState.RUNNING, "Let connector NAME go on where it was."),
    (
        "stop",
        TargetState.STOPPED,
        "End the tasks of connector NAME, so that its offsets can be changed.",
    ),
):
    connectors.command(_word, help=_meaning)(_wanting(_word, _state))


def _creation(
    file: ConnectorFile, state: str | None, offsets: Sequence[Entry | OffsetChange] | None
) -> Mapping[str, object]:
    body: dict[str, object] = {"name": file.name, "config": dict(file.config)}
    wanted = state or file.initial_state.value
    # Kafka Connect knows the field since 3.7 only.
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
