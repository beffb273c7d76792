"""`headrace run`: connectors in one process, until they are stopped or, once, until all has been read."""

from __future__ import annotations

import os
import signal
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from types import FrameType

import click

from headrace.admission import all_admitted, checked_worker
from headrace.cli.configurations import connector_config
from headrace.cli.main import INTERRUPTED, TERMINATED
from headrace.observe.events import told_to
from headrace.observe.logs import EventLog, configure_logging
from headrace.runtime.connector_files import read_worker_file
from headrace.runtime.state_file import make_folder, state_path
from headrace.runtime.worker import Worker
from headrace.standalone import standalone

FAILED = 1
_STANDARD_ERROR = 2
_CODES = {signal.SIGINT: INTERRUPTED, signal.SIGTERM: TERMINATED}


@click.command()
@click.argument("worker_config", type=click.Path(path_type=Path))
@click.argument("connector_configs", type=click.Path(path_type=Path), nargs=-1, required=True)
@click.option("--once", is_flag=True, help="End when all there is has been read and committed.")
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
    json_logs: bool,
    log_level: str,
) -> int:
    """Run the connectors of CONNECTOR_CONFIGS (JSON or properties files) in this process.

    Ends with 0 when all was read (--once), 1 when a connector failed, 130 after Ctrl-C and 143 after
    SIGTERM. What could not be committed by then, because the grace ran out or the broker was away, is
    read again by the next run.
    """
    configure_logging(log_level.upper(), as_json=json_logs)
    config = checked_worker(read_worker_file(worker_config), where=str(worker_config))
    connectors = all_admitted(
        [partial(connector_config, path) for path in connector_configs], config
    )
    state_file = state_path(config, worker_config.absolute(), os.environ)
    make_folder(config, state_file)
    with standalone(
        config, connectors, state_file=state_file, tell=told_to(EventLog()), once=once
    ) as ready:
        signals = _Signals(ready.worker)
        ready.worker.start(ready.specs)
        failures = ready.worker.wait()
    return FAILED if failures else signals.code()


class _Signals:
    """SIGINT and SIGTERM ask the worker to stop; a second one ends the process at once."""

    def __init__(self, worker: Worker) -> None:
        self._worker = worker
        self._received: int | None = None
        for each in _CODES:
            signal.signal(each, self._receive)

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
        self._worker.ask_to_stop()
        # Not through sys.stderr, which may be in the middle of a line of its own.
        os.write(_STANDARD_ERROR, b"headrace: stopping; once more ends it at once.\n")
