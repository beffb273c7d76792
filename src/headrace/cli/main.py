"""The command `headrace`: which commands there are, and how each of them ends.

Exit codes: 0 done, 1 it failed and a sentence says why, 2 the command line was wrong, 130 after
Ctrl-C, 143 after SIGTERM.
"""

from __future__ import annotations

import importlib
import logging
import signal
import sys
from collections.abc import Sequence
from types import FrameType
from typing import NoReturn

import click

from headrace import __version__
from headrace.connect.errors import ConnectError
from headrace.observe.form import as_logged

# Where each command is; imported when it is asked for, because some of them import Spark.
COMMANDS = {
    "broker": "headrace.cli.broker:broker",
    "completion": "headrace.cli.completion:completion",
    "connectors": "headrace.cli.connectors:connectors",
    "explain": "headrace.cli.explain:explain",
    "offsets": "headrace.cli.offsets:offsets",
    "run": "headrace.cli.run:run",
}
INTERRUPTED, TERMINATED = 130, 143


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
    signal.signal(signal.SIGTERM, _terminate)
    if signal.getsignal(signal.SIGINT) is signal.SIG_DFL:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    logging.basicConfig(level=logging.INFO, format="%(message)s", stream=sys.stderr)
    sys.exit(outcome())


def outcome(arguments: Sequence[str] | None = None) -> int:
    """Do what *arguments* say, by default those of the process; the exit code."""
    try:
        code = commands.main(arguments, prog_name="headrace", standalone_mode=False)
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except (click.Abort, KeyboardInterrupt):
        click.echo("headrace: interrupted.", err=True)
        return INTERRUPTED
    except SystemExit as error:
        if error.code == TERMINATED:
            click.echo("headrace: terminated.", err=True)
        raise
    except ConnectError as error:
        click.echo(f"headrace: {as_logged(str(error))}", err=True)
        return 1
    return code if isinstance(code, int) else 0


def _terminate(_signal_number: int, _frame: FrameType | None) -> NoReturn:
    # An exception, so that whatever is open is closed on the way out.
    raise SystemExit(TERMINATED)
