"""Prints what is in a topic, with another client library: python examples/read.py TOPIC [HOST:PORT]."""

from __future__ import annotations

import signal
import sys

from headrace.testing.judge import committed_records


def main() -> None:
    """Print the value of each committed record in a line."""
    # So that `| head` ends it quietly.
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    topic, bootstrap = [*sys.argv[1:3], "127.0.0.1:9092"][:2]
    for record in committed_records(bootstrap, topic):
        print((record.value or b"").decode(errors="replace"))


if __name__ == "__main__":
    main()
