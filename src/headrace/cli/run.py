"""`headrace run`: a worker that answers requests until it is stopped or, once, until all has been read."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Mapping, Sequence
from contextlib import closing
from functools import partial
from pathlib import Path

import click

from headrace.admission import all_admitted, checked_worker
from headrace.cli.configurations import connector_config
from headrace.cli.loading import Loading
from headrace.cli.signals import Signals
from headrace.observe.counts import Counts
from headrace.observe.events import told_to
from headrace.observe.form import as_logged, name_in_logs
from headrace.observe.logs import EventLog, configure_logging
from headrace.observe.metrics import Metrics
from headrace.observe.printed import printed_as
from headrace.rest.binding import Binding
from headrace.rest.config import RestConfig
from headrace.rest.problems import rest_problems
from headrace.rest.server import RestServer
from headrace.runtime.herder.standings import standings
from headrace.runtime.settings.connector_files import (
    ConnectorFile,
    read_connector_file,
    read_worker_file,
)
from headrace.runtime.settings.state_file import make_folder, state_path
from headrace.runtime.settings.worker_config import WorkerConfig
from headrace.runtime.standalone.herder import StandaloneHerder
from headrace.standalone import serving, standalone
from headrace.storage.sqlite import SqliteStorage

FAILED = 1
_LOOK_SECONDS = 0.2

_log = logging.getLogger(__name__)


@click.command()
@click.argument("worker_config", type=click.Path(path_type=Path))
@click.argument("connector_configs", type=click.Path(path_type=Path), nargs=-1)
@click.option("--once", is_flag=True, help="End when all there is has been read and committed.")
@click.option("--only-files", is_flag=True, help="Leave other stored connectors alone.")
@click.option("--json-logs", is_flag=True, help="Log one JSON object a line.")
@click.option(
    "--log-level",
    type=click.Choice(["DEBUG", "INFO", "WARNING", "ERROR"], case_sensitive=False),
    default="INFO",
    show_default=True,
    help="How much is logged.",
)
def run(
    worker_config: Path,
    connector_configs: Sequence[Path],
    *,
    once: bool,
    only_files: bool,
    json_logs: bool,
    log_level: str,
) -> int:
    """Run a worker that answers requests as Kafka Connect does, with the connectors that it knows.

    Those of CONNECTOR_CONFIGS (JSON or properties files) are created, or get their configuration from
    there. With --once, these alone are run in this process, until all has been read.

    Ends with 0 when all was read (--once), 1 when a connector failed, 130 after Ctrl-C and 143 after
    SIGTERM. What could not be committed by then, because the grace ran out or the broker was away, is
    read again by the next run.
    """
    if once and not connector_configs:
        raise click.UsageError("Missing argument 'CONNECTOR_CONFIGS...': --once runs these alone.")
    configure_logging(log_level.upper(), as_json=json_logs)
    props = read_worker_file(worker_config)
    config = checked_worker(
        props,
        where=str(worker_config),
        folder=worker_config.absolute().parent,
        also=None if once else rest_problems,
    )
    state_file = state_path(config, worker_config.absolute(), os.environ)
    with printed_as(as_logged):
        if once:
            return _run_once(config, connector_configs, state_file)
        return _serve(config, connector_configs, state_file, only_files=only_files)


def _run_once(config: WorkerConfig, paths: Sequence[Path], state_file: Path) -> int:
    connectors = all_admitted([partial(connector_config, path) for path in paths], config)
    make_folder(config, state_file)
    with standalone(
        config, connectors, state_file=state_file, tell=told_to(EventLog()), once=True
    ) as ready:
        signals = Signals(ready.worker.ask_to_stop)
        ready.worker.start(ready.specs)
        failures = ready.worker.wait()
    return FAILED if failures else signals.code()


def _serve(
    config: WorkerConfig,
    paths: Sequence[Path],
    state_file: Path,
    *,
    only_files: bool,
) -> int:
    files = _read(paths, config)
    make_folder(config, state_file)
    rest = RestConfig.parse(config.originals)
    counts = Counts()
    # The file before the listeners: it knows the pid of a worker that has both.
    with (
        closing(SqliteStorage(state_file)) as storage,
        closing(_bound(rest)) as binding,
        serving(
            config,
            state_file=state_file,
            tell=told_to(EventLog(), counts),
            storage=storage,
            worker_id=binding.worker_id,
        ) as herder,
    ):
        metrics = Metrics(counts, partial(standings, herder))
        server = RestServer(herder, rest, binding=binding, metrics=metrics.text)
        only = [each.name for each in files] if only_files else None
        return _served(herder, server, Loading(files, herder), only=only)


def _served(
    herder: StandaloneHerder,
    server: RestServer,
    loading: Loading,
    *,
    only: Sequence[str] | None,
) -> int:
    """The exit code of a worker that has answered until it was stopped, or could not go on."""
    signals = Signals()
    try:
        herder.start(only=only)
        server.start()
        for sentence in server.binding.sentences:
            _log.info("%s", sentence)
        loading.start()
        while not (signals.came or herder.failure or loading.failure):
            # Not an event that the handler sets: it may interrupt this thread inside of one.
            time.sleep(_LOOK_SECONDS)
        problem = herder.failure or loading.failure
    finally:
        # Requests that wait for Kafka would hold up the server's end.
        herder.refuse_waiting()
        server.close()
        herder.close()
    if problem is not None and not signals.came:
        raise problem
    return FAILED if herder.failed() else signals.code()


def _bound(config: RestConfig) -> Binding:
    binding = Binding.of(config)
    name_in_logs(binding.worker_id)
    return binding


def _read(paths: Sequence[Path], config: WorkerConfig) -> list[ConnectorFile]:
    """The files of the command line; all that is wrong with any of them is told at once."""
    files = list[ConnectorFile]()

    def read(path: Path) -> Mapping[str, object]:
        file = read_connector_file(path)
        files.append(file)
        return file.config

    all_admitted([partial(read, path) for path in paths], config)
    return files
