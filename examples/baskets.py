"""A connector that places the ends of transactions: the lines of a basket are in Kafka together, or not at all."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence

from headrace.connect import (
    Config,
    ExactlyOnceSupport,
    SourceConnector,
    SourcePartition,
    SourceRecord,
    SourceTask,
    setting,
)

LINES = SourcePartition(table="lines")
NEXT = "SELECT rowid, item FROM lines WHERE rowid > ? ORDER BY rowid LIMIT 500"


class BasketsTask(SourceTask):
    """Reads the lines of baskets; the last line of each says whether it was paid or left."""

    def start(self, config: Mapping[str, str]) -> None:
        """Open the database."""
        self.topic = config["topic"]
        self.database = sqlite3.connect(config["database"])
        offset = self.context.offsets.offset(LINES)
        self.last = offset["rowid"] if offset else 0

    def poll(self) -> list[SourceRecord]:
        """The next lines; a basket may continue in the next poll."""
        records = [self.record(*row) for row in self.database.execute(NEXT, [self.last])]
        for record in records:
            if record.value == "paid":
                self.context.transaction.commit_transaction(record)
            elif record.value == "left":
                self.context.transaction.abort_transaction(record)
        return records

    def record(self, rowid: int, item: str) -> SourceRecord:
        """One line, with the offset behind it."""
        self.last = rowid
        return SourceRecord(
            topic=self.topic,
            value=item,
            source_partition=LINES,
            source_offset={"rowid": rowid},
        )

    def stop(self) -> None:
        """Close the database."""
        self.database.close()


class BasketsConfig(Config):
    """What can be set."""

    database: str = setting(doc="The SQLite file with the table lines (item).")
    topic: str = setting(doc="The topic to send to.")


class BasketsConnector(SourceConnector):
    """One task, which needs transaction.boundary=connector."""

    config_class = BasketsConfig
    task_class = BasketsTask

    def start(self, props: Mapping[str, str]) -> None:
        """Take the configuration."""
        self.props = props

    def task_configs(self, max_tasks: int) -> Sequence[Mapping[str, str]]:
        """One task: the table is one source partition."""
        return [self.props]

    def exactly_once_support(self, props: Mapping[str, str]) -> ExactlyOnceSupport:
        """Supported: the lines can be read again from any of them."""
        return ExactlyOnceSupport.SUPPORTED

    def can_define_transaction_boundaries(self, props: Mapping[str, str]) -> bool:
        """The task does."""
        return True
