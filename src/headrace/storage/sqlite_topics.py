"""Active topics in a worker's SQLite file."""

from __future__ import annotations

from collections.abc import Sequence

from headrace.storage.sqlite_file import SqliteFile


class SqliteTopicStore:
    """A :class:`~headrace.storage.protocols.TopicStore`."""

    def __init__(self, file: SqliteFile) -> None:
        self._file = file

    def topics(self, connector: str) -> Sequence[str]:
        """The topics, sorted."""
        query = "select topic from topics where connector = ? order by topic"
        return [str(topic) for (topic,) in self._file.rows(query, (connector,))]

    def put(self, connector: str, topics: Sequence[str]) -> None:
        """Add *topics*; durable on return."""
        statement = "insert or ignore into topics values (?, ?)"
        self._file.write(*((statement, (connector, topic)) for topic in topics))

    def forget(self, connector: str) -> None:
        """Remove all of them."""
        self._file.write(("delete from topics where connector = ?", (connector,)))
