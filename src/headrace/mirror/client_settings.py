"""The settings of the mirror's own Kafka clients, by MirrorMaker's order of precedence. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Final

from headrace.connect.config import under

SERVERS: Final = "bootstrap.servers"
PASSED_ON: Final = (
    *(
        f"{side}.{kind}."
        for side in ("source", "target")
        for kind in ("cluster", "consumer", "producer", "admin")
    ),
    *("consumer.", "producer.", "admin.", "replication.policy."),
)
"""Beginnings of the keys of clients, and of a naming policy, in a connector's configuration."""
_PREFIXES: Final = ("security.protocol", "ssl.", "sasl.")


class Side(Enum):
    """Which of a flow's two clusters a client talks to."""

    SOURCE = "source"
    TARGET = "target"


class ClientKind(Enum):
    """What a client is for."""

    ADMIN = "admin"
    CONSUMER = "consumer"
    PRODUCER = "producer"


class ClientRole(Enum):
    """What a client does, as the end of its ``client.id`` says."""

    REPLICATION_CONSUMER = "replication-consumer"
    REPLICATION_SOURCE_ADMIN = "replication-source-admin"
    REPLICATION_TARGET_ADMIN = "replication-target-admin"
    OFFSET_SYNCS_SOURCE_PRODUCER = "offset-syncs-source-producer"
    OFFSET_SYNCS_TARGET_PRODUCER = "offset-syncs-target-producer"
    OFFSET_SYNCS_SOURCE_ADMIN = "offset-syncs-source-admin"
    OFFSET_SYNCS_TARGET_ADMIN = "offset-syncs-target-admin"
    OFFSET_SYNCS_SOURCE_CONSUMER = "offset-syncs-source-consumer"
    OFFSET_SYNCS_TARGET_CONSUMER = "offset-syncs-target-consumer"
    CHECKPOINT_SOURCE_ADMIN = "checkpoint-source-admin"
    CHECKPOINT_TARGET_ADMIN = "checkpoint-target-admin"
    CHECKPOINTS_TARGET_CONSUMER = "checkpoints-target-consumer"
    HEARTBEATS_TARGET_ADMIN = "heartbeats-target-admin"
    # MirrorMaker has none: there the worker's own producer writes to the target.
    REPLICATION_PRODUCER = "replication-producer"


def client_settings(
    props: Mapping[str, str], side: Side, kind: ClientKind, client_id: str
) -> dict[str, str]:
    """A client's settings under the Java clients' names, out of a connector's *props*.

    From the lowest precedence to the highest: ``source.cluster.*``, of which only the servers and the login count;
    ``consumer.*``; ``source.consumer.*``; or the same for the other side and other clients. *client_id*, see
    :func:`client_id`, is added to the user's own. Servers may be missing: then they are the worker's.
    """
    cluster = under(props, f"{side.value}.cluster.")
    settings = {key: value for key, value in cluster.items() if is_connection_key(key)}
    settings |= under(props, f"{kind.value}.")
    settings |= under(props, f"{side.value}.{kind.value}.")
    if kind is ClientKind.CONSUMER:
        settings["enable.auto.commit"] = "false"
        settings.setdefault("auto.offset.reset", "earliest")
    users = settings.get("client.id")
    settings["client.id"] = client_id if users is None else f"{users}|{client_id}"
    return settings


def client_id(
    *, source: str, target: str, connector: str, role: ClientRole, task: int | None = None
) -> str:
    """What a client is called in the brokers' logs and quotas, without the user's own ``client.id``."""
    name = connector if task is None else f"{connector}-{task}"
    return f"{source}->{target}|{name}|{role.value}"


def is_connection_key(key: str) -> bool:
    """Whether *key* of ``source.cluster.*`` or ``target.cluster.*`` has an effect: the servers, and how to log in."""
    return key == SERVERS or key.startswith(_PREFIXES)
