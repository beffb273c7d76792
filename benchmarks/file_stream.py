"""The connector FileStreamSource as both workers get it: the same settings, chain and converter for Kafka Connect and headrace."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from benchmarks.contender import Job

STRING: Final = "org.apache.kafka.connect.storage.StringConverter"
JSON: Final = "org.apache.kafka.connect.json.JsonConverter"
INTERVAL: Final[Mapping[str, str]] = {
    "transaction.boundary": "interval",
    "transaction.boundary.interval.ms": "1000",
}
"""Transactions of a second, for a connector of Kafka Connect; headrace has them as it comes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FileStream:
    """A connector, always of one task; *settings* are added to its own.

    Its topic is the job's with *prefix*, which a chain removes.
    """

    prefix: str = ""
    settings: Mapping[str, str] = field(default_factory=dict[str, str])

    def config(self, job: Job) -> dict[str, str]:
        """The configuration without a name."""
        return {
            "connector.class": "org.apache.kafka.connect.file.FileStreamSourceConnector",
            "tasks.max": "1",
            "file": str(job.sample.path),
            "topic": f"{self.prefix}{job.topic}",
            **self.settings,
        }


def with_chain(settings: Mapping[str, str] | None = None) -> FileStream:
    """Three transformations, and the JSON converter with its schema."""
    package = "org.apache.kafka.connect.transforms"
    chain = {
        "transforms": "wrap,insert,route",
        "transforms.wrap.type": f"{package}.HoistField$Value",
        "transforms.wrap.field": "line",
        "transforms.insert.type": f"{package}.InsertField$Value",
        "transforms.insert.static.field": "origin",
        "transforms.insert.static.value": "benchmark",
        "transforms.route.type": f"{package}.RegexRouter",
        "transforms.route.regex": "unrouted-(.*)",
        "transforms.route.replacement": "$1",
        "value.converter": JSON,
        "value.converter.schemas.enable": "true",
    }
    return FileStream(prefix="unrouted-", settings={**chain, **(settings or {})})
