"""Where the records of an object go before the last evolution has its say. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from headrace.connect.errors import TaskFailedError
from headrace.sources.item import Context


@dataclass(frozen=True, slots=True, kw_only=True)
class Destination:
    """Topic, Kafka partition and key of an object's records; an empty topic is told by no one yet."""

    topic: str
    partition: int | None = None
    key: str | None = None


def destination(
    context: Context[Any], *, configured: str | None, told: Mapping[str, str]
) -> Destination:
    """The *configured* topic, else what the object's key has *told* by a template, else its *context*."""
    partition = told.get("partition")
    return Destination(
        topic=configured or told.get("topic") or context.topic or "",
        partition=context.partition if partition is None else int(partition),
        key=told.get("key"),
    )


def no_topic(native_key: Any) -> TaskFailedError:  # noqa: ANN401 (a key of the source's own type)
    """Nothing tells the topic of the records of *native_key*."""
    return TaskFailedError(f"{native_key}: Nothing tells the topic of its records. Set topic.")
