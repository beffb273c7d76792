"""`headrace run`: a worker that answers requests until it is stopped or, with --once, until all has been read."""

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
from typing import Final, TypeVar

import click

from headrace.cli.main import INTERRUPTED, TERMINATED, signalled
from headrace.config.config_files import (
    ConnectorFile,
    connector_config,
    read_connector_file,
    read_worker_file,
)
from headrace.config.state_file import make_folder, state_path
from headrace.config.worker_config import WorkerConfig
from headrace.herder.command_line import create_or_update
from headrace.herder.statuses import connector_snapshots
from headrace.herder.worker_herder import WorkerHerder
from headrace.observe.counts import Counts
from headrace.observe.event_log import EventLog
from headrace.observe.events import to_all
from headrace.observe.log_format import as_logged, configure_logging, name_in_logs
from headrace.observe.metrics import Metrics
from headrace.observe.secret_masking import printed_as
from headrace.plugins import ValidatedConnector, checked_worker, validated_connectors
from headrace.rest.config import RestConfig, rest_problems
from headrace.rest.listeners import Binding
from headrace.rest.server import RestServer
from headrace.storage.sqlite import SqliteStorage
from headrace.worker import running, serving

_log = logging.getLogger(__name__)

# The first connectors start meanwhile, with imports of their own, and should not be slowed down.
FIRST_SECONDS: Final = 5.0


def import_ahead(plugins: Callable[[], object], *, after_seconds: float = FIRST_SECONDS) -> None:
    """List *plugins* later, on a daemon thread; returns at once.

    The first list takes seconds, for which a client would wait. Errors are logged here, and raised again for
    clients.
    """
    later = threading.Timer(after_seconds, _ask, args=(plugins,))
    later.name = "headrace-plugins"
    later.daemon = True
    later.start()


def _ask(plugins: Callable[[], object]) -> None:
    try:
        plugins()
    except Exception as error:  # noqa: BLE001 (authors' modules may raise anything)
        _log.warning("The plugins could not be listed: %s", error)


class Loading:
    """Submits the connectors in *files* to *herder*; then lets all of its connectors run.

    Finally *ahead* is called with the herder's list of plugins, to compute it early.
    """

    def __init__(
        self,
        files: Sequence[ConnectorFile],
        herder: WorkerHerder,
        *,
        ahead: Callable[[Callable[[], object]], None] = import_ahead,
    ) -> None:
        self._files = files
        self._herder = herder
        self._ahead = ahead
        self.failure: Exception | None = None
        """Why a connector was refused; the main thread raises it."""

    def start(self) -> None:
        """Start, and return at once."""
        threading.Thread(target=self._load, name="headrace-files", daemon=True).start()

    def _load(self) -> None:
        try:
            if self._files:
                create_or_update(self._files, self._herder)
        except Exception as error:  # noqa: BLE001 (the main thread raises it)
            self.failure = error
        else:
            self._herder.ready()
            self._ahead(self._herder.plugins)


_CODES: Final = {signal.SIGINT: INTERRUPTED, signal.SIGTERM: TERMINATED}
_STANDARD_ERROR: Final = 2


class Signals:
    """Calls *ask_to_stop* at the first signal, on the main thread, which also creates this; *hurry*, if given, at the second one.

    The next one ends the process. A signal that was received before, and has not ended it, counts as well.
    """

    def __init__(
        self,
        ask_to_stop: Callable[[], None] = lambda: None,
        *,
        hurry: Callable[[], None] | None = None,
    ) -> None:
        self._ask_to_stop = ask_to_stop
        self._hurry = hurry
        self._received: signal.Signals | None = None
        for each in _CODES:
            signal.signal(each, self._receive)
        before = signalled()
        if before is not None:
            # A plugin that was being imported has swallowed its exception.
            self._receive(before, None)

    @property
    def came(self) -> bool:
        """Whether the process was asked to end."""
        return self._received is not None

    def code(self) -> int:
        """The exit code that says how the process was ended."""
        return 0 if self._received is None else _CODES[self._received]

    def _receive(self, number: int, _frame: FrameType | None) -> None:
        received = signal.Signals(number)
        if self._received is None:
            self._received = received
            self._ask_to_stop()
            what = "ends it at once" if self._hurry is None else "does not wait for other workers"
            _say(f"stopping; once more {what}")
        elif self._hurry is not None:
            hurry, self._hurry = self._hurry, None
            hurry()
            _say("leaving the group; once more ends it at once")
        else:
            _say("ended at once; what was not committed will be read again")
            os._exit(_CODES[received])


def _say(what: str) -> None:
    # Not through sys.stderr, which the signal may have interrupted.
    os.write(_STANDARD_ERROR, f"headrace: {what}.\n".encode())


FAILED = 1
_LOOK_SECONDS = 0.2
_Command = TypeVar("_Command", bound=Callable[..., object])


def with_log_options(command: _Command) -> _Command:
    """Add the options of the log's form and level to a command that runs workers."""
    as_json = click.option("--json-logs", is_flag=True, help="Log one JSON object a line.")
    level = click.option(
        "--log-level",
        type=click.Choice(["DEBUG", "INFO", "WARNING", "ERROR"], case_sensitive=False),
        default="INFO",
        show_default=True,
        help="The least level that is logged.",
    )
    return as_json(level(command))


@click.command()
@click.argument("worker_config", type=click.Path(path_type=Path))
@click.argument("connector_configs", type=click.Path(path_type=Path), nargs=-1)
@click.option("--once", is_flag=True, help="End when everything has been read and committed.")
@click.option("--only-files", is_flag=True, help="Do not run other stored connectors.")
@with_log_options
def run(
    worker_config: Path,
    connector_configs: Sequence[Path],
    *,
    once: bool,
    only_files: bool,
    json_logs: bool,
    log_level: str,
) -> int:
    """Run a worker that answers requests as Kafka Connect does, with its stored connectors.

    Those of CONNECTOR_CONFIGS (JSON or properties files) are created, or get their configuration from
    there. With --once, only these are run in this process, until everything has been read.

    Ends with 0 when everything was read (--once), 1 when a connector failed, 130 after Ctrl-C and 143 after
    SIGTERM. Records that could not be committed by then, because the grace period ended or the broker was
    unreachable, are read again by the next run.
    """
    if once and not connector_configs:
        raise click.UsageError("Missing argument 'CONNECTOR_CONFIGS...': --once runs only these.")
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
    connectors = validated_connectors([partial(connector_config, path) for path in paths], config)
    make_folder(config, state_file)
    with running(
        config, connectors, state_file=state_file, emit=to_all(EventLog(has_end=True)), once=True
    ) as herder:
        signals = Signals(herder.ask_to_stop)
        herder.ready()
        failures = herder.wait_for_end()
    return FAILED if failures else signals.code()


def _serve(
    config: WorkerConfig,
    paths: Sequence[Path],
    state_file: Path,
    *,
    only_files: bool,
) -> int:
    files, connectors = _read(paths, config)
    make_folder(config, state_file)
    rest = RestConfig.parse(config.originals)
    counts = Counts()
    # The state file before the listeners: its error names the pid of a worker that has both.
    with (
        closing(SqliteStorage(state_file)) as storage,
        closing(bound(rest)) as binding,
        serving(
            config,
            state_file=storage,
            emit=to_all(EventLog(), counts),
            worker_id=binding.worker_id,
            validated=connectors,
        ) as herder,
    ):
        metrics = Metrics(counts, partial(connector_snapshots, herder))
        server = RestServer(herder, rest, binding=binding, metrics=metrics.text)
        only = [each.name for each in files] if only_files else None
        return served(herder, server, files, only=only)


def served(
    herder: WorkerHerder,
    server: RestServer,
    files: Sequence[ConnectorFile] = (),
    *,
    only: Sequence[str] | None = None,
    hurry: Callable[[], None] | None = None,
) -> int:
    """Run the worker, with the connectors in *files*, until it is stopped, or cannot continue; returns the exit code.

    Of the stored connectors only those named *only* are run, if that is given. See :class:`Signals` for *hurry*.
    """
    loading = Loading(files, herder)
    signals = Signals(hurry=hurry)
    try:
        herder.start(only=only)
        server.start()
        for sentence in server.binding.sentences:
            _log.info("%s", sentence)
        loading.start()
        while not (signals.came or herder.is_to_end or herder.failure or loading.failure):
            # Not an event that the signal handler sets: it may interrupt this thread while it holds the event's lock.
            time.sleep(_LOOK_SECONDS)
        problem = herder.failure or loading.failure
    finally:
        # Requests that wait for Kafka would delay the server's end.
        herder.refuse_waiting()
        # Others may ask this worker until it has left them.
        herder.leave()
        server.close()
        herder.close()
    if problem is not None and not signals.came:
        raise problem
    return FAILED if herder.failed() else signals.code()


def bound(config: RestConfig) -> Binding:
    """The listeners, bound; log lines name the worker from then on."""
    binding = Binding.of(config)
    name_in_logs(binding.worker_id)
    return binding


def _read(
    paths: Sequence[Path], config: WorkerConfig
) -> tuple[Sequence[ConnectorFile], Sequence[ValidatedConnector]]:
    """The files of the command line and their connectors, with their warnings logged.

    Raises the problems of all of them together.
    """
    files = list[ConnectorFile]()

    def read(path: Path) -> Mapping[str, object]:
        file = read_connector_file(path)
        files.append(file)
        return file.config

    connectors = validated_connectors([partial(read, path) for path in paths], config)
    return files, connectors
