"""A stream into a table, and a bounded read, in a session of another kind: a program for a player."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from spark.kafka.tables import Table, bounded


def play(session: SparkSession, asked: Mapping[str, Any]) -> Iterator[Mapping[str, object]]:
    """Run the query until it has read what there is; the values in its table, and those of a bounded read."""
    options = {"kafka.bootstrap.servers": asked["bootstrap"], "subscribe": asked["topic"]}
    table = Table(session, Path(asked["folder"]), options)
    table.run()
    yield {"stream": table.values(), "read": bounded(session, options)}
