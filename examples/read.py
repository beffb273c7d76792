"""Prints what is in a topic, with another client library: python examples/read.py TOPIC [HOST:PORT]."""

from __future__ import annotations

import signal
import sys
from typing import Any

from kafka.errors import KafkaError

from headrace.testing.judge import committed_records
from kafka import KafkaConsumer

_DEFAULT = "127.0.0.1:9092"


def main() -> None:
    """Print the value of each committed record in a line; exits with 1 where there is no such topic."""
    # So that `| head` ends it quietly.
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    if len(sys.argv) not in (2, 3):
        sys.exit("Say which topic to print: python examples/read.py TOPIC [HOST:PORT]")
    topic, bootstrap = [*sys.argv[1:], _DEFAULT][:2]
    try:
        known = _topics(bootstrap)
    except (KafkaError, OSError, ValueError) as error:
        sys.exit(f"{bootstrap}: No Kafka broker answers there ({error}).")
    if topic not in known:
        sys.exit(f"{bootstrap}: There is no topic {topic!r} here. It has {_listed(known)}.")
    for record in committed_records(bootstrap, topic):
        print((record.value or b"").decode(errors="replace"))


def _topics(bootstrap: str) -> set[str]:
    # The stubs do not know this setting; without it half a minute passes.
    quickly: dict[str, Any] = {"bootstrap_timeout_ms": 5_000}
    consumer = KafkaConsumer(bootstrap_servers=bootstrap, **quickly)
    try:
        return set(consumer.topics())
    finally:
        consumer.close()


def _listed(topics: set[str]) -> str:
    return ", ".join(sorted(topics)) or "none"


if __name__ == "__main__":
    main()
