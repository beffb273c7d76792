"""Source offsets in the worker's SQLite file, as the bytes that Kafka would hold."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import cast

from headrace.connect.partition import SourceOffset, SourcePartition
from headrace.connect.task import Offsets
from headrace.kafka.sender import OffsetEntry
from headrace.storage.offset_index import OffsetIndex
from headrace.storage.sqlite_file import SqliteFile, Statement


class SqliteOffsetStore:
    """An :class:`~headrace.storage.protocols.OffsetStore`; rows hold the bytes that Kafka would hold."""

    def __init__(self, file: SqliteFile) -> None:
        self._file = file
        self._index = OffsetIndex()
        self._unseen: list[OffsetEntry] | None = None

    def refresh(self) -> None:
        """See everything committed before this call."""
        # The file has one writer, this process: after the first time only its own writes are new.
        self._index.follow(self._stored() if self._unseen is None else self._unseen)
        self._unseen = []
        self._index.replayed(topic_partitions=1)

    def known(self, connector: str) -> Mapping[SourcePartition, SourceOffset]:
        """All offsets of *connector* as of the last ``refresh``; a snapshot that does not change."""
        return self._index.known(connector)

    def is_empty(self) -> bool:
        """Whether no connector has an offset, as of the last ``refresh``."""
        return self._index.is_empty()

    def foreign(self, connector: str) -> Mapping[SourcePartition, SourceOffset]:
        """Those of ``known`` that are stored under other bytes than ours, alone or beside ours."""
        return self._index.foreign(connector)

    def entries_for(self, connector: str, offsets: Offsets) -> list[OffsetEntry]:
        """The records that ``put`` would write, as of the last ``refresh``."""
        return self._index.entries_for(connector, offsets)

    def put(self, connector: str, offsets: Offsets) -> None:
        """Commit *offsets* atomically; ``None`` removes. Durable on return."""
        if self._unseen is None:
            self.refresh()
        entries = self._index.entries_for(connector, offsets)
        self._file.write(*(offset_statement(key, value) for key, value in entries))
        self.written(entries)

    def written(self, entries: Sequence[OffsetEntry]) -> None:
        """Take note of records that have been written into the file; called by its other writers, too."""
        # Before the first look at the file there is nothing to add to: all of it will be new.
        if self._unseen is not None:
            self._unseen = [*self._unseen, *entries]

    def close(self) -> None:
        """The file belongs to the storage, which closes it."""

    def _stored(self) -> list[OffsetEntry]:
        rows = self._file.rows("select key, value from offsets order by rowid")
        return cast("list[OffsetEntry]", rows)


def offset_statement(key: bytes, value: bytes | None) -> Statement:
    """What stores a record of an offsets topic in the file, or with a tombstone removes it."""
    if value is None:
        return "delete from offsets where key = ?", (key,)
    return "insert or replace into offsets values (?, ?)", (key, value)
