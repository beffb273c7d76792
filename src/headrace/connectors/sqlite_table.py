"""New rows of a SQLite table, by an id that grows; the position also moves past rows that do not match.

One task. Exactly-once is supported: the offset is the last id that was looked at.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import ClassVar

import pyarrow as pa

from headrace.connect.arrow_types import struct_schema
from headrace.connect.batch import BatchOffsets, SourceBatch
from headrace.connect.config import Config
from headrace.connect.connector import ExactlyOnceSupport, SourceConnector
from headrace.connect.errors import OffsetsError, RecordError
from headrace.connect.partition import OffsetReader, SourceOffset, SourcePartition
from headrace.connect.record import BadRecord
from headrace.connect.setting import setting
from headrace.connect.task import Offsets, SourceTask
from headrace.connectors.files.naming.topics import topic_problem
from headrace.connectors.sqlite_rows import NO_ID, Selection, SqliteRows, Window

_ID = "id"
_WAIT_SECONDS = 1.0
_NAP_SECONDS = 0.1


class SqliteConfig(Config):
    """Which rows of which table, and where they go."""

    database: str = setting(
        importance="high",
        non_empty=True,
        doc="The path of the SQLite file. It is opened for reading only.",
    )
    table: str = setting(importance="high", non_empty=True, doc="The table.")
    id_column: str = setting(
        "id.column",
        default="id",
        non_empty=True,
        doc="An integer column that is larger in each new row than in all before, with an index.",
    )
    where: str | None = setting(
        default=None,
        doc="An SQL expression of the table's columns; only rows for which it is true become records.",
    )
    topic: str = setting(
        importance="high", non_empty=True, valid=topic_problem, doc="The topic to publish to."
    )
    batch_rows: int = setting(
        "batch.rows",
        default=1000,
        at_least=1,
        importance="low",
        doc="The most rows that are looked at, and held in memory, at a time.",
    )

    @property
    def selection(self) -> Selection:
        """Which rows are read."""
        return Selection(
            database=self.database,
            table=self.table,
            id_column=self.id_column,
            where=self.where or None,
        )

    @property
    def partition(self) -> SourcePartition:
        """The one source partition."""
        return SourcePartition(database=self.database, table=self.table)


class SqliteTask(SourceTask):
    """Reads the table window by window."""

    def start(self, config: Mapping[str, str]) -> None:
        """See :class:`~headrace.connect.task.SourceTask`."""
        self._config = SqliteConfig.parse(config)
        self._looked_at = _position(self.context.offsets, self._config)
        self._idle = False
        self._rows = SqliteRows(self._config.selection)
        self._schema = struct_schema(self._rows.fields)

    def poll(self) -> SourceBatch | None:
        """The next rows that match, after waiting up to a second for some."""
        deadline = time.monotonic() + _WAIT_SECONDS
        while True:
            window = self._rows.window(self._looked_at, most=self._config.batch_rows)
            self._idle = window is None
            batch = self._batch(window) if window else None
            if batch or time.monotonic() >= deadline or self.context.stopping():
                return batch
            if window is None:
                time.sleep(_NAP_SECONDS)

    def is_idle(self) -> bool:
        """Whether there was no row at all; one that does not match is one that was looked at."""
        return self._idle

    def update_offsets(self, offsets: Offsets) -> Offsets | None:
        """The last id that was looked at: rows that do not match are not looked at again."""
        if self._looked_at == NO_ID:
            return None
        return {self._config.partition: {_ID: self._looked_at}}

    def stop(self) -> None:
        """See :class:`~headrace.connect.task.SourceTask`."""
        rows = getattr(self, "_rows", None)
        if rows is not None:
            rows.close()

    def _batch(self, window: Window) -> SourceBatch | None:
        """The rows of *window* up to one that does not fit its columns; raises when that is the first one."""
        rows, last_id = window.rows, window.last_id
        try:
            columns = self._columns(rows)
        except (pa.ArrowException, TypeError, ValueError, OverflowError):
            good = self._fitting(rows)
            if not good:
                raise self._refused(rows[0]) from None
            rows, last_id = rows[:good], self._id_of(rows[good - 1])
            columns = self._columns(rows)
        self._looked_at = last_id
        if not rows:
            return None
        return SourceBatch(
            topic=self._config.topic,
            values=pa.StructArray.from_arrays(columns, fields=list(self._rows.fields)),
            value_schema=self._schema,
            source_partition=self._config.partition,
            offsets=BatchOffsets(columns={_ID: columns[self._rows.id_index]}),
        )

    def _columns(self, rows: Sequence[Sequence[object]]) -> list[pa.Array]:
        fields = self._rows.fields
        return [pa.array([row[at] for row in rows], each.type) for at, each in enumerate(fields)]

    def _fitting(self, rows: Sequence[Sequence[object]]) -> int:
        """How many rows there are before the first that does not fit."""
        for count, row in enumerate(rows):
            try:
                self._columns([row])
            except (pa.ArrowException, TypeError, ValueError, OverflowError):
                return count
        return len(rows)

    def _refused(self, row: Sequence[object]) -> RecordError:
        """Why *row* is no record; the next poll goes on behind it."""
        config = self._config
        self._looked_at = self._id_of(row)
        return RecordError(
            "a value is not of the type that its column is declared with.",
            native_key=config.database,
            position=f"table {config.table}, {config.id_column} {self._looked_at}",
            advice="Correct the row, or set errors.tolerance=all to pass over it.",
            bad=BadRecord(
                source_partition=config.partition,
                source_offset={_ID: self._looked_at},
                topic=config.topic,
                raw=repr(tuple(row)).encode(),
            ),
        )

    def _id_of(self, row: Sequence[object]) -> int:
        found = row[self._rows.id_index]
        assert isinstance(found, int)
        return found


class SqliteConnector(SourceConnector):
    """New rows of one SQLite table."""

    config_class: ClassVar[type[Config]] = SqliteConfig
    task_class: ClassVar[type[SourceTask]] = SqliteTask

    def start(self, props: Mapping[str, str]) -> None:
        """Look whether the database, the table and its columns are there."""
        self._props = dict(props)
        self._config = SqliteConfig.parse(props)
        self._rows = SqliteRows(self._config.selection)

    def task_configs(self, max_tasks: int) -> Sequence[Mapping[str, str]]:
        """Always one."""
        return [self._props]

    def has_work(self, offsets: OffsetReader) -> bool:
        """Whether there is a row that was not looked at."""
        return self._rows.any_behind(_position(offsets, self._config))

    def stop(self) -> None:
        """See :class:`~headrace.connect.connector.SourceConnector`."""
        rows = getattr(self, "_rows", None)
        if rows is not None:
            rows.close()

    def exactly_once_support(self, props: Mapping[str, str]) -> ExactlyOnceSupport:
        """Always: a row's id is its position."""
        return ExactlyOnceSupport.SUPPORTED

    def validate_offsets(self, props: Mapping[str, str], offsets: Offsets) -> None:
        """Only the table's own partition, with an id."""
        partition = SqliteConfig.parse(props).partition
        for each, offset in offsets.items():
            if each != partition:
                raise OffsetsError(
                    f"The source partition must be {dict(partition)}, not {dict(each)}."
                )
            if offset is not None:
                _id_in(offset)


def _position(offsets: OffsetReader, config: SqliteConfig) -> int:
    """The id behind which to read."""
    stored = offsets.offset(config.partition)
    return NO_ID if stored is None else _id_in(stored)


def _id_in(offset: SourceOffset) -> int:
    found = offset.get(_ID)
    if not isinstance(found, int) or isinstance(found, bool):
        raise OffsetsError(
            f"The offset must be like {{'id': 17}}, with an integer, not {dict(offset)}."
        )
    return found
