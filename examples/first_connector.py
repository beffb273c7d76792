"""A first connector: every order that is written to a SQLite table becomes a Kafka record, exactly once."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence

from headrace.connect import (
    Config,
    SourceConnector,
    SourcePartition,
    SourceRecord,
    SourceTask,
    setting,
)

ORDERS = SourcePartition(table="orders")
NEXT = "SELECT rowid, item, pieces FROM orders WHERE rowid > ? ORDER BY rowid LIMIT 500"


class OrdersTask(SourceTask):
    """Reads the table, from the first order that is not in Kafka yet."""

    def start(self, config: Mapping[str, str]) -> None:
        """Open the database. What is in Kafka already, headrace knows."""
        self.topic = config["topic"]
        self.database = sqlite3.connect(config["database"])
        offset = self.context.offsets.offset(ORDERS)
        self.last = offset["rowid"] if offset else 0

    def poll(self) -> list[SourceRecord]:
        """The next orders, each with the offset to resume from after it."""
        rows = self.database.execute(NEXT, [self.last]).fetchall()
        self.last = rows[-1][0] if rows else self.last
        return [
            SourceRecord(
                topic=self.topic,
                value={"item": item, "pieces": pieces},
                source_partition=ORDERS,
                source_offset={"rowid": rowid},
            )
            for rowid, item, pieces in rows
        ]

    def stop(self) -> None:
        """Close the database."""
        self.database.close()


class OrdersConfig(Config):
    """What can be set; checked before anything starts."""

    database: str = setting(doc="The SQLite file with the table orders (item, pieces).")
    topic: str = setting(doc="The topic to send to.")


class OrdersConnector(SourceConnector):
    """Says what there is to do: one task, which has the connector's own configuration."""

    config_class = OrdersConfig
    task_class = OrdersTask

    def start(self, props: Mapping[str, str]) -> None:
        """Take the configuration."""
        self.props = props

    def task_configs(self, max_tasks: int) -> Sequence[Mapping[str, str]]:
        """One task: the table is one source partition, and has one owner at a time."""
        return [self.props]
