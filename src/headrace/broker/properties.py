"""The settings of the broker: one node that is broker and controller, on loopback; pure."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

# Each with the reason why Kafka's own default does not do for one node that starts often.
DEFAULTS = {
    # There is only one node to replicate to.
    "offsets.topic.replication.factor": "1",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
    # Fifty partitions each, by default, that have to be loaded at every start.
    "offsets.topic.num.partitions": "4",
    "transaction.state.log.num.partitions": "4",
    "share.coordinator.state.topic.num.partitions": "1",
    # Consumers of a test need not wait three seconds for more members.
    "group.initial.rebalance.delay.ms": "0",
    # A killed broker may register again only when its old session is over: nine seconds by default.
    "broker.session.timeout.ms": "3000",
    "broker.heartbeat.interval.ms": "500",
    # 128 MB of the heap by default, and compaction here is small.
    "log.cleaner.dedupe.buffer.size": "16777216",
    # Records with old timestamps would be gone within minutes, by Kafka's default of a week.
    "log.retention.ms": "-1",
    "auto.create.topics.enable": "true",
    "num.partitions": "1",
}

LOG_CONFIG = """\
status = warn
appender.console.type = Console
appender.console.name = console
appender.console.layout.type = PatternLayout
appender.console.layout.pattern = %d{ISO8601} %p %m (%c{1})%n
rootLogger.level = info
rootLogger.appenderRef.console.ref = console
"""


def server_properties(
    *, port: int, controller_port: int, log_dirs: Path, overrides: Mapping[str, str]
) -> dict[str, str]:
    """Everything the broker is told; *overrides* win."""
    return {
        "process.roles": "broker,controller",
        "node.id": "1",
        "listeners": f"PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller_port}",
        "advertised.listeners": f"PLAINTEXT://127.0.0.1:{port}",
        "controller.listener.names": "CONTROLLER",
        "controller.quorum.voters": f"1@127.0.0.1:{controller_port}",
        "log.dirs": str(log_dirs),
        **DEFAULTS,
        **overrides,
    }


def as_text(properties: Mapping[str, str]) -> str:
    """*properties* in the form of a Java properties file."""
    return "".join(f"{_escaped(key)}={_escaped(value)}\n" for key, value in properties.items())


def _escaped(text: str) -> str:
    # Java reads these files as Latin-1 and takes a backslash, a blank in a key and : = as its own.
    special = {"\\": "\\\\", "\n": "\\n", "\r": "\\r", " ": "\\ ", ":": "\\:", "=": "\\="}
    return "".join(
        special.get(letter) or (letter if letter.isascii() else _as_utf16(letter))
        for letter in text
    )


def _as_utf16(letter: str) -> str:
    units = letter.encode("utf-16-be").hex()
    return "".join(f"\\u{units[at : at + 4]}" for at in range(0, len(units), 4))
