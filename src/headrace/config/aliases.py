"""Names of connector classes: short ones, Kafka Connect's, and ``package.module:Class``."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

CONNECTORS: Final[Mapping[str, str]] = {
    "files": "headrace.connectors.files.connector:FilesConnector",
    "file_stream": "headrace.connectors.file_stream:FileStreamSourceConnector",
    "sqlite": "headrace.connectors.sqlite_table:SqliteConnector",
    "aiven_s3": "headrace.connectors.files.aiven.connector:AivenS3Connector",
    "mirror_source": "headrace.mirror.source_connector:MirrorSourceConnector",
    "mirror_checkpoint": "headrace.mirror.checkpoint_connector:MirrorCheckpointConnector",
    "mirror_heartbeat": "headrace.mirror.heartbeat_connector:MirrorHeartbeatConnector",
}
"""The path of each connector that comes with headrace, by its short name."""

_MIRROR = "org.apache.kafka.connect.mirror.Mirror"

JAVA_NAMES: Final[Mapping[str, str]] = {
    "org.apache.kafka.connect.file.FileStreamSourceConnector": "file_stream",
    # The current class, the one that its documentation names, and an earlier one.
    "io.aiven.kafka.connect.s3.source.S3SourceConnector": "aiven_s3",
    "io.aiven.kafka.connect.s3.S3SourceConnector": "aiven_s3",
    "io.aiven.kafka.connect.s3.source.AivenKafkaConnectS3SourceConnector": "aiven_s3",
    f"{_MIRROR}SourceConnector": "mirror_source",
    f"{_MIRROR}CheckpointConnector": "mirror_checkpoint",
    f"{_MIRROR}HeartbeatConnector": "mirror_heartbeat",
}
"""Our short name for each Java class that we have, of Kafka Connect and of others."""

_JAVA_TASKS: Final[Mapping[str, str]] = {
    "headrace.connectors.file_stream:FileStreamSourceTask": "org.apache.kafka.connect.file.FileStreamSourceTask",
    "headrace.connectors.files.aiven.connector:AivenS3Task": "io.aiven.kafka.connect.s3.source.S3SourceTask",
    "headrace.mirror.source_task:MirrorSourceTask": f"{_MIRROR}SourceTask",
    "headrace.mirror.checkpoint_connector:MirrorCheckpointTask": f"{_MIRROR}CheckpointTask",
    "headrace.mirror.heartbeat_connector:MirrorHeartbeatTask": f"{_MIRROR}HeartbeatTask",
}

_SINKS = ("org.apache.kafka.connect.file.FileStreamSinkConnector",)


class UnknownConnectorError(ValueError):
    """No connector has this name; the message is for the user."""


def connector_path(class_name: str) -> str | None:
    """The path of headrace's own connector that *class_name* stands for; ``None`` if it stands for none. Pure."""
    if class_name in CONNECTORS.values():
        return class_name
    return CONNECTORS[_KNOWN[class_name]] if class_name in _KNOWN else None


def connector_name(path: str) -> str:
    """The name to show for the connector at *path*: Java's for a class that we have, else *path*. Pure."""
    return next((java for java, ours in JAVA_NAMES.items() if CONNECTORS[ours] == path), path)


def task_name(path: str) -> str:
    """The name to show for the task's class at *path*, as for its connector. Pure."""
    return _JAVA_TASKS.get(path, path)


def unknown_connector(class_name: str, others: Iterable[str] = ()) -> UnknownConnectorError:
    """Why there is no connector called *class_name*, with the available ones: our own, and *others*. Pure."""
    if ":" in class_name:
        return UnknownConnectorError(
            f"{class_name.partition(':')[0]} is not one of the modules that may be loaded: add it to "
            "plugin.modules of the worker, or its folder to plugin.path."
        )
    if class_name in _SINK_NAMES:
        return UnknownConnectorError(f"{class_name} is a sink; headrace runs sources only.")
    return UnknownConnectorError(
        "Failed to find any class that implements Connector and which name matches "
        f"{class_name}, available connectors are: {', '.join((*CONNECTORS, *others))}"
    )


def _also_called(java_name: str) -> tuple[str, ...]:
    """Kafka Connect accepts a class's name in full, without packages, and without ``Connector``."""
    simple = java_name.rpartition(".")[2]
    return java_name, simple, simple.removesuffix("Connector")


JAVA_ALIASES: Final[Mapping[str, str]] = {
    alias: name for java, name in JAVA_NAMES.items() for alias in _also_called(java)
}
"""Our short name for each name that Kafka Connect accepts for a class that we have."""

_KNOWN: Mapping[str, str] = {name: name for name in CONNECTORS} | JAVA_ALIASES
_SINK_NAMES = frozenset(alias for java in _SINKS for alias in _also_called(java))
