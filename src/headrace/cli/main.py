"""The command `headrace`: its subcommands, and how each of them ends.

Exit codes: 0 success, 1 failure with a message, 2 wrong command line, 130 after Ctrl-C, 143 after SIGTERM.
"""

from __future__ import annotations

import importlib
import logging
import signal
import sys
from collections.abc import Sequence
from types import FrameType
from typing import Final, NoReturn

import click

from headrace import __version__
from headrace.class_path import Terminated
from headrace.connect.errors import ConnectError
from headrace.observe.log_format import as_logged

# The commands by name; imported on demand, because some of them import Spark.
COMMANDS = {
    "broker": "headrace.cli.broker:broker",
    "cluster": "headrace.cli.cluster:cluster",
    "completion": "headrace.cli.completion:completion",
    "connectors": "headrace.cli.connectors:connectors",
    "explain": "headrace.cli.explain:explain",
    "mirror": "headrace.cli.mirror:mirror",
    "offsets": "headrace.cli.offsets:offsets",
    "run": "headrace.cli.run:run",
    "worker": "headrace.cli.worker:worker",
    "spark": "headrace.cli.spark:spark",
    "takeover": "headrace.cli.takeover:takeover",
    "workers": "headrace.cli.workers:workers",
}
INTERRUPTED, TERMINATED = 130, 143
_ENDS: Final = {
    signal.SIGINT: ("interrupted", INTERRUPTED),
    signal.SIGTERM: ("terminated", TERMINATED),
}
_received: Final = list[signal.Signals]()


class Commands(click.Group):
    """A group whose commands are imported on demand."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The names, sorted."""
        return sorted(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command of that name, or None."""
        place = COMMANDS.get(cmd_name)
        if place is None:
            return None
        module, name = place.split(":")
        command = getattr(importlib.import_module(module), name)
        assert isinstance(command, click.Command)
        return command


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="headrace")
def commands() -> None:
    """A Kafka Connect-compatible source runtime whose data plane runs on Spark."""


def main() -> NoReturn:
    """Run the command line and end the Python process with the right exit code."""
    signal.signal(signal.SIGTERM, _receive)
    if signal.getsignal(signal.SIGINT) in (signal.SIG_DFL, signal.default_int_handler):
        signal.signal(signal.SIGINT, _receive)
    logging.basicConfig(level=logging.INFO, format="%(message)s", stream=sys.stderr)
    sys.exit(outcome())


def outcome(arguments: Sequence[str] | None = None) -> int:
    """Run the command line *arguments*, by default those of the process; returns the exit code."""
    try:
        code = _done(arguments)
    except (click.Abort, KeyboardInterrupt):
        return _ended_by(signal.SIGINT)
    except Terminated:
        return _ended_by(signal.SIGTERM)
    except Exception:
        # A module that is being imported may turn the exception of a signal into any other.
        if signalled() is None:
            raise
        code = 1
    number = signalled()
    return code if number is None else _ended_by(number)


def signalled() -> signal.Signals | None:
    """The last SIGINT or SIGTERM that was received here, and not by a worker."""
    return _received[-1] if _received else None


def _done(arguments: Sequence[str] | None) -> int:
    try:
        code = commands.main(arguments, prog_name="headrace", standalone_mode=False)
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except ConnectError as error:
        if signalled() is None:
            click.echo(f"headrace: {as_logged(str(error))}", err=True)
        return 1
    return code if isinstance(code, int) else 0


def _ended_by(number: signal.Signals) -> int:
    word, code = _ENDS[number]
    click.echo(f"headrace: {word}.", err=True)
    return code


def _receive(number: int, _frame: FrameType | None) -> NoReturn:
    _received.append(signal.Signals(number))
    # An exception, so that whatever is open is closed on the way out.
    raise KeyboardInterrupt if number == signal.SIGINT else Terminated
