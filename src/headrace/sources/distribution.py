"""Which of several tasks reads an object. Pure."""

from __future__ import annotations

import hashlib
from typing import Final

from headrace.connect.errors import TaskFailedError
from headrace.connect.partition import SourcePartition

OBJECT_HASH, PARTITION, ALL = "OBJECT_HASH", "PARTITION", "ALL"
DISTRIBUTIONS: Final = (OBJECT_HASH, PARTITION, ALL)


def owner(
    kind: str, source_partition: SourcePartition, kafka_partition: int | None, tasks: int
) -> int | None:
    """The task that reads an object, of *tasks*; ``None`` when each task reads what it is given.

    The same object goes to the same task in every process. Raises
    :class:`~headrace.connect.errors.TaskFailedError` for PARTITION when the object tells no Kafka partition.
    """
    if kind == ALL:
        return None
    if kind == PARTITION:
        if kafka_partition is None:
            named = ", ".join(map(str, source_partition.values()))
            raise TaskFailedError(
                f"{named}: It tells no Kafka partition, which distribution.type=PARTITION needs. Let its context "
                "or native.key.template tell one, or choose another distribution.type."
            )
        return kafka_partition % tasks
    named = "\0".join(f"{key}={source_partition[key]!r}" for key in sorted(source_partition))
    return int.from_bytes(hashlib.blake2b(named.encode(), digest_size=8).digest()) % tasks
