"""`headrace mirror`: runs the flows of a MirrorMaker 2 file, and shows how far they are."""

from __future__ import annotations

import json
import logging
import os
import sys
import time
from collections.abc import Collection, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Final

import click

from headrace.cli.mirror_flows import FlowWorker, MirrorFile, flow_workers
from headrace.cli.mirror_offsets import options_of
from headrace.cli.mirror_process import RunningFlow, opened_flows, opened_state_folder, run_flows
from headrace.cli.mirror_status import FlowWatcher, SeenFlow, status_json, status_lines
from headrace.cli.run import FAILED, Signals, with_log_options
from headrace.connect.errors import ConfigError
from headrace.mirror.dedicated import CLUSTERS, CONNECTORS, ENABLE_ONE, SOURCE_CONNECTOR
from headrace.observe.event_log import EventLog
from headrace.observe.events import ConnectorStarted, Event, to_all
from headrace.observe.log_format import as_logged, configure_logging
from headrace.observe.secret_masking import printed_as
from headrace.runtime.engine import DataPlane
from headrace.worker.data_plane import lazy_engine

_log = logging.getLogger(__name__)

_RUN: Final = "run"
# They write as long as a flow runs, and no records of its users.
_IN_BACKGROUND: Final = frozenset(CONNECTORS) - {SOURCE_CONNECTOR}
_FILE: Final = click.Path(path_type=Path, dir_okay=False)


class FileOrCommand(click.Group):
    """A group whose first argument may be a command or, of `run`, a file or an option."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """The command that *args* name, with what is left of them."""
        if args and args[0] not in self.commands:
            args = [_RUN, *args]
        return super().resolve_command(ctx, args)


def aliases(_ctx: click.Context, _option: click.Parameter, given: tuple[str, ...]) -> list[str]:
    """Aliases of clusters, which commas may separate."""
    return [alias for each in given for alias in each.replace(",", " ").split()]


with_clusters = click.option(
    "--clusters",
    metavar="ALIASES",
    multiple=True,
    callback=aliases,
    help="Only the flows to these clusters, separated by commas.",
)


@click.group(
    cls=FileOrCommand,
    context_settings={"ignore_unknown_options": True},
    subcommand_metavar="FILE | COMMAND [ARGS]...",
)
def mirror() -> None:
    """Copy topics between Kafka clusters, exactly once.

    'headrace mirror FILE' runs the flows of FILE, a properties file of MirrorMaker 2's dedicated mode; 'headrace mirror
    run --help' shows its options. 'headrace mirror status FILE' shows how far they are.
    """


@mirror.command()
@click.argument("file", type=_FILE)
@with_clusters
@click.option("--once", is_flag=True, help="Copy what is there now, and end.")
@click.option(
    "--state",
    "folder",
    type=click.Path(path_type=Path, file_okay=False),
    help="The folder of the flows' state files.  [default: one for FILE in ~/.local/state/headrace]",
)
@with_log_options
def run(
    file: Path,
    *,
    clusters: Collection[str],
    once: bool,
    folder: Path | None,
    json_logs: bool,
    log_level: str,
) -> int:
    """Run the flows of FILE, a file of MirrorMaker 2's dedicated mode, in this process.

    A flow that fails ends, with its reason in the log; the others go on.

    Ends with 0 when everything was copied (--once), 1 when a flow has failed, 130 after Ctrl-C and 143 after SIGTERM.
    What was not committed by then is copied by the next run.
    """
    configure_logging(log_level.upper(), as_json=json_logs)
    read = MirrorFile.read(file)
    for warning in read.warnings:
        _log.warning("%s: %s", file, warning)
    workers = flow_workers(read, read.towards(clusters), once=once)
    if not workers:
        told = f"No flow has anything to do: only heartbeats are enabled, which --once leaves out. {ENABLE_ONE}"
        raise ConfigError([(CLUSTERS, told)], where=str(file))
    with printed_as(as_logged):
        return _run(file, workers, folder, once=once)


@mirror.command()
@click.argument("file", type=_FILE)
@with_clusters
@click.option("--watch", is_flag=True, help="Again and again, until Ctrl-C.")
@click.option(
    "--every",
    "seconds",
    type=click.FloatRange(min=0.1),
    default=2.0,
    show_default=True,
    help="How many seconds lie between two looks.",
)
@click.option(
    "--json", "as_json", is_flag=True, help="Print JSON, for programs; with --watch one line each."
)
def status(
    file: Path, *, clusters: Collection[str], watch: bool, seconds: float, as_json: bool
) -> int:
    """Show how far the flows of FILE are, whether or not anything runs.

    The clusters are asked: up to where each partition can be read, and what the flow's group on its target says. Nothing
    is written, and no one joins the group. The time is that of the first record that is not copied.

    Ends with 1 when a cluster did not answer.
    """
    configure_logging("ERROR", as_json=False)
    read = MirrorFile.read(file)
    workers = flow_workers(read, read.towards(clusters))
    with printed_as(as_logged), FlowWatcher(workers) as watcher:
        while True:
            now_ms = time.time() * 1e3
            flows = watcher.seen(now_ms)
            _show(flows, now_ms, as_json=as_json, again=watch)
            if not watch:
                return FAILED if any(each.has_problem for each in flows) else 0
            time.sleep(seconds)


def _show(flows: Sequence[SeenFlow], now_ms: float, *, as_json: bool, again: bool) -> None:
    if as_json:
        click.echo(json.dumps(status_json(flows, now_ms), indent=None if again else 2))
        return
    lines = list(status_lines(flows))
    if again:
        # Does nothing where the output is not a terminal.
        click.clear()
    for line in lines:
        click.echo(as_logged(line))
    if again and not sys.stdout.isatty():
        click.echo()


def _run(file: Path, workers: Sequence[FlowWorker], folder: Path | None, *, once: bool) -> int:
    states = opened_state_folder(file, folder, os.environ)
    with ExitStack() as opened:
        flows = opened_flows(workers, states, opened, once=once)
        # Which of the workers describes Spark does not matter: that is the same for all.
        engine = lazy_engine(workers[0].config)
        opened.callback(engine.close)

        def start_ahead(event: Event) -> None:
            # Records may come at any time, and are not to wait for Spark.
            if isinstance(event, ConnectorStarted) and not once:
                engine.start_ahead()

        plane = DataPlane.shared(engine)
        running = [
            RunningFlow(
                each,
                plane,
                to_all(EventLog(_IN_BACKGROUND, has_end=once), start_ahead),
                once=once,
                retries_start=len(flows) > 1 and not once,
                command_options=options_of(
                    file, each.worker, folder, answers=each.binding is not None
                ),
            )
            for each in flows
        ]
        signals = Signals()
        _log.info("Flows: %s", ", ".join(each.name for each in running))
        has_failed = run_flows(running, lambda: signals.came)
    return FAILED if has_failed else signals.code()
