"""`headrace broker`: a real Kafka broker on this machine, for experiments."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import click

from headrace.broker import Broker, BrokerState
from headrace.jvm.cache import cache_root

DEFAULT_PORT = 9092
# The usual exit code of `status` for a service that does not run (LSB).
NOT_RUNNING = 3
FOLDER = click.Path(path_type=Path, file_okay=False)

of_folder = click.option(
    "--data",
    "folder",
    type=FOLDER,
    default=lambda: cache_root() / "broker",
    show_default="the cache folder's broker/",
    help="Where the broker stores everything; it says which broker is meant.",
)


@click.group()
def broker() -> None:
    """Start and stop a real Kafka broker of one node on this machine."""


@broker.command()
@of_folder
@click.option(
    "--port",
    type=int,
    show_default=f"the port that the folder's broker had, or else {DEFAULT_PORT}",
    help="0 takes a free one.",
)
@click.option("--log", "log_folder", type=FOLDER, help="Where its log goes.  [default: DATA/log]")
@click.option("--fresh", is_flag=True, help="Remove everything it stored before.")
@click.option(
    "--property", "properties", multiple=True, metavar="KEY=VALUE", help="A setting of the broker."
)
def start(
    *,
    folder: Path,
    port: int | None,
    log_folder: Path | None,
    fresh: bool,
    properties: Iterable[str],
) -> None:
    """Start it and return when it answers. It runs until `stop`."""
    chosen = Broker(
        folder,
        port=_port_of(folder) if port is None else port,
        log_folder=log_folder,
        properties=key_values(properties),
        detached=True,
    )
    ran_before = chosen.is_running
    chosen.start(fresh=fresh)
    state = chosen.state
    assert state is not None
    click.echo(_described(state, "is already running" if ran_before else "is ready"))


@broker.command()
@of_folder
@click.pass_context
def status(ctx: click.Context, *, folder: Path) -> None:
    """Show whether it runs; the exit code is 3 when it does not."""
    state = Broker(folder).state
    if state is None or not state.is_running:
        click.echo(f"No broker runs on {folder}.")
        ctx.exit(NOT_RUNNING)
    click.echo(_described(state, "runs"))


@broker.command()
@of_folder
def stop(*, folder: Path) -> None:
    """Stop it; what it stored stays."""
    stopped = Broker(folder).stop()
    click.echo("The broker is stopped." if stopped else f"No broker runs on {folder}.")


def _port_of(folder: Path) -> int:
    before = Broker(folder).state
    return before.port if before is not None else DEFAULT_PORT


def _described(state: BrokerState, what: str) -> str:
    return (
        f"The Kafka broker {what}.\n"
        f"  bootstrap.servers  {state.bootstrap}\n"
        f"  process            {state.pid}\n"
        f"  log                {state.log_file}"
    )


def key_values(properties: Iterable[str]) -> dict[str, str]:
    """What was given as ``KEY=VALUE``; raises ``click.BadParameter``."""
    pairs: dict[str, str] = {}
    for written in properties:
        key, equals, value = written.partition("=")
        if not equals or not key.strip():
            raise click.BadParameter(f"{written!r} is not KEY=VALUE.", param_hint="--property")
        pairs[key.strip()] = value.strip()
    return pairs
