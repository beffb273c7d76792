"""`headrace run`: a worker that answers requests until it is stopped or, once, until all has been read."""

from __future__ import annotations

import logging
import os
import signal
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from functools import partial
from pathlib import Path
from types import FrameType

import click

from headrace.admission import all_admitted, checked_worker
from headrace.cli.configurations import connector_config
from headrace.cli.main import INTERRUPTED, TERMINATED
from headrace.cli.plugins_ahead import import_ahead
from headrace.observe.counts import Counts
from headrace.observe.events import told_to
from headrace.observe.form import name_in_logs
from headrace.observe.logs import EventLog, configure_logging
from headrace.observe.metrics import Metrics
from headrace.rest.binding import Binding
from headrace.rest.config import RestConfig
from headrace.rest.server import RestServer
from headrace.runtime.herder.standings import standings
from headrace.runtime.settings.connector_files import (
    ConnectorFile,
    read_connector_file,
    read_worker_file,
)
from headrace.runtime.settings.state_file import make_folder, state_path
from headrace.runtime.settings.worker_config import WorkerConfig
from headrace.runtime.standalone.command_line import take_in
from headrace.runtime.standalone.herder import StandaloneHerder
from headrace.standalone import serving, standalone
from headrace.storage.sqlite import SqliteStorage

FAILED = 1
_STANDARD_ERROR = 2
_CODES = {signal.SIGINT: INTERRUPTED, signal.SIGTERM: TERMINATED}
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
    config = checked_worker(props, where=str(worker_config))
    state_file = state_path(config, worker_config.absolute(), os.environ)
    if once:
        return _run_once(config, connector_configs, state_file)
    return _serve(config, connector_configs, state_file, only_files=only_files)


def _run_once(config: WorkerConfig, paths: Sequence[Path], state_file: Path) -> int:
    connectors = all_admitted([partial(connector_config, path) for path in paths], config)
    make_folder(config, state_file)
    with standalone(
        config, connectors, state_file=state_file, tell=told_to(EventLog()), once=True
    ) as ready:
        signals = _Signals(ready.worker.ask_to_stop)
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
        signals = _Signals(lambda: None)
        loading = _Loading(files, herder)
        try:
            herder.start(only=[each.name for each in files] if only_files else None)
            server.start()
            _log.info("Requests are answered at %s", binding.url)
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


class _Loading:
    """Asks for the connectors of the command line on a thread of its own: Kafka may have to be waited for."""

    def __init__(self, files: Sequence[ConnectorFile], herder: StandaloneHerder) -> None:
        self._files = files
        self._herder = herder
        self.failure: Exception | None = None

    def start(self) -> None:
        """Begin, and return at once."""
        threading.Thread(target=self._load, name="headrace-files", daemon=True).start()

    def _load(self) -> None:
        try:
            take_in(self._files, self._herder)
        except Exception as error:  # noqa: BLE001 (the main thread raises it)
            self.failure = error
        else:
            self._herder.ready()
            import_ahead(self._herder.plugins)


class _Signals:
    """SIGINT and SIGTERM ask the worker to stop; a second one ends the process at once."""

    def __init__(self, ask_to_stop: Callable[[], None]) -> None:
        self._ask_to_stop = ask_to_stop
        self._received: int | None = None
        for each in _CODES:
            signal.signal(each, self._receive)

    @property
    def came(self) -> bool:
        """Whether the process was asked to end."""
        return self._received is not None

    def code(self) -> int:
        """The exit code that says how the process was ended."""
        return 0 if self._received is None else _CODES[signal.Signals(self._received)]

    def _receive(self, number: int, _frame: FrameType | None) -> None:
        if self._received is not None:
            os.write(
                _STANDARD_ERROR,
                b"headrace: ended at once; what was not committed will be read again.\n",
            )
            os._exit(128 + number)
        self._received = number
        self._ask_to_stop()
        # Not through sys.stderr, which may be in the middle of a line of its own.
        os.write(_STANDARD_ERROR, b"headrace: stopping; once more ends it at once.\n")
