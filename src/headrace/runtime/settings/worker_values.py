"""Which values settings of a worker may have; each function tells what is wrong with one, or ``None``. Pure."""

from __future__ import annotations

import re

# Slots are given this address, so it has to be one that can be connected to.
_ANYWHERE = ("0.0.0.0", "::", "[::]")  # noqa: S104 (refused, not bound)
_LAST_PORT = 65_535
# As Kafka's own clients read it: a protocol before it is passed over.
_SERVER = re.compile(r"([a-zA-Z][a-zA-Z\d+.-]*://)?(\[[0-9a-zA-Z.%:]+\]|[0-9a-zA-Z._%-]+):\d{1,5}")


def topic_count(value: int) -> str | None:
    """Partitions or replicas of a topic that is made."""
    # Kafka's own sign for "what the broker says".
    return (
        None
        if value == -1 or value > 0
        else "Value must be positive, or -1 for the broker's default"
    )


def listener(value: str) -> str | None:
    """Where the worker listens for its tasks."""
    host, _, port = value.rpartition(":")
    if not host or not port.isdecimal() or int(port) > _LAST_PORT:
        return "It must be host:port, with port 0 for a free one"
    if host in _ANYWHERE:
        return "Name an address at which tasks can reach this worker"
    return None


def servers(value: tuple[str, ...]) -> str | None:
    """Brokers, each as host:port."""
    # The client takes 9092 for a missing port, and waits for a host that nobody meant.
    wrong = next((each for each in value if not _SERVER.fullmatch(each)), None)
    if wrong is None:
        return None if value else "Name at least one broker as host:port"
    return f"Invalid url in bootstrap.servers: {wrong}. It must be host:port"
