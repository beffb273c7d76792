"""The command `headrace`, also as `python -m headrace`."""

from __future__ import annotations

import signal
from typing import NoReturn


def main() -> NoReturn:
    """Run the command line, and end the Python process with its exit code."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        # Nothing is open yet: Ctrl-C need not show which module was being imported.
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    from headrace.cli.main import main as command  # noqa: PLC0415 (it takes most of a second)

    command()


if __name__ == "__main__":
    main()
