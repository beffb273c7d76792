"""Prints what is in a topic, with another client library: python examples/read.py TOPIC [HOST:PORT] [--keys] [--headers]."""

from __future__ import annotations

import signal
import sys
from typing import Any

from kafka.errors import KafkaError

from headrace.testing.judge import committed_records
from kafka import KafkaConsumer

_DEFAULT = "127.0.0.1:9092"


def main() -> None:
    """Print the value of each committed record in a line; exits with 1 where there is no such topic.

    ``--keys`` puts the key and a tabulator before it, ``--headers`` a line for each header behind it.
    """
    # So that `| head` ends it quietly.
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    options = {each for each in sys.argv[1:] if each.startswith("--")}
    named = [each for each in sys.argv[1:] if each not in options]
    if len(named) not in (1, 2) or options - {"--keys", "--headers"}:
        sys.exit(
            "Say which topic to print: python examples/read.py TOPIC [HOST:PORT] [--keys] [--headers]"
        )
    topic, bootstrap = [*named, _DEFAULT][:2]
    try:
        known = _topics(bootstrap)
    except (KafkaError, OSError, ValueError) as error:
        sys.exit(f"{bootstrap}: No Kafka broker answers there ({error}).")
    if topic not in known:
        sys.exit(f"{bootstrap}: There is no topic {topic!r} here. It has {_listed(known)}.")
    for record in committed_records(bootstrap, topic):
        print(f"{_text(record.key)}\t" if "--keys" in options else "", _text(record.value), sep="")
        for name, value in record.headers if "--headers" in options else ():
            print(f"  {name}: {_text(value)}")


def _text(content: bytes | None) -> str:
    return "(null)" if content is None else content.decode(errors="replace")


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
