"""The rows of one SQLite table behind an id, a window of them at a time."""

from __future__ import annotations

import sqlite3
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pyarrow as pa

from headrace.connect.errors import RetriableError, TaskFailedError

NO_ID: Final = -(2**63)
"""Before every row's id."""

# A writer holds the lock for moments; who waits longer says so and tries again.
_PATIENCE_SECONDS = 1.0
_BUSY: Final = frozenset({sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED})
_PRIMARY_CODE = 0xFF


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """Which rows: those of *table* in the file *database* for which the SQL expression *where* is true."""

    database: str
    table: str
    id_column: str
    where: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """All matching *rows* with ids up to *last_id*, in the order of their ids."""

    last_id: int
    rows: Sequence[Sequence[object]]


class SqliteRows:
    """Reads what *selection* says; it never writes. Used by one thread.

    Raises :class:`~headrace.connect.errors.RetriableError` while the database is locked, and
    :class:`~headrace.connect.errors.TaskFailedError` when it, the table or a column is not there.
    """

    def __init__(self, selection: Selection) -> None:
        self._selection = selection
        table, column = _quoted(selection.table), _quoted(selection.id_column)
        self._matching = f"AND ({selection.where})" if selection.where else ""
        self._behind = f"FROM {table} WHERE {column} > ?"
        self._id = column
        with self._translated():
            uri = Path(selection.database).absolute().as_uri() + "?mode=ro"
            self._connection = sqlite3.connect(
                uri, uri=True, timeout=_PATIENCE_SECONDS, isolation_level=None
            )
        try:
            self.fields = self._fields()
            self.window(NO_ID, most=0)
        except BaseException:
            self.close()
            raise

    @property
    def id_index(self) -> int:
        """The place of the id in each row."""
        return [each.name for each in self.fields].index(self._selection.id_column)

    def window(self, after: int, *, most: int) -> Window | None:
        """Look at the next *most* rows behind the id *after*; ``None`` when there are none."""
        with self._translated():
            self._connection.execute("BEGIN")
            try:
                return self._window(after, most)
            finally:
                self._connection.execute("ROLLBACK")

    def any_behind(self, after: int) -> bool:
        """Whether there is a row with a larger id, matching or not."""
        with self._translated():
            found = self._connection.execute(f"SELECT 1 {self._behind} LIMIT 1", (after,))
            return found.fetchone() is not None

    def close(self) -> None:
        """Close the database."""
        self._connection.close()

    def _window(self, after: int, most: int) -> Window | None:
        ids = f"SELECT {self._id} AS i {self._behind} ORDER BY {self._id} LIMIT ?"
        (last_id,) = self._connection.execute(
            f"SELECT max(i) FROM ({ids})",  # noqa: S608 (names are quoted)
            (after, most),
        ).fetchone()
        until = after if last_id is None else last_id
        columns = ", ".join(map(_column, self.fields))
        rows = self._connection.execute(
            f"SELECT {columns} {self._behind} AND {self._id} <= ? {self._matching} ORDER BY {self._id}",
            (after, until),
        ).fetchall()
        if last_id is None:
            return None
        if not isinstance(last_id, int):
            raise self._no_id(f"has {last_id!r} in it")
        return Window(last_id=last_id, rows=rows)

    def _no_id(self, why: str) -> TaskFailedError:
        chosen = self._selection
        return TaskFailedError(
            f"{chosen.database}, table {chosen.table}: the column {chosen.id_column} {why}, but ids must be "
            "integers that grow. Choose another id.column."
        )

    def _fields(self) -> Sequence[pa.Field]:
        chosen = self._selection
        with self._translated():
            found = self._connection.execute(
                'SELECT name, type, "notnull" FROM pragma_table_info(?)', (chosen.table,)
            ).fetchall()
        if not found:
            raise TaskFailedError(f"{chosen.database} has no table {chosen.table}. Correct table.")
        if chosen.id_column not in (name for name, _, _ in found):
            columns = ", ".join(name for name, _, _ in found)
            raise TaskFailedError(
                f"The table {chosen.table} of {chosen.database} has no column {chosen.id_column}, only "
                f"{columns}. Correct id.column."
            )
        kinds = {name: kind for name, kind, _ in found}
        if "INT" not in kinds[chosen.id_column].upper():
            raise self._no_id(f"is declared as {kinds[chosen.id_column] or 'nothing'}")
        return [
            pa.field(name, pa.int64(), nullable=False)
            if name == chosen.id_column
            else pa.field(name, _arrow(kind), nullable=not required)
            for name, kind, required in found
        ]

    @contextmanager
    def _translated(self) -> Generator[None]:
        try:
            yield
        except sqlite3.Error as error:
            place = f"{self._selection.database}, table {self._selection.table}: {error}."
            code = getattr(error, "sqlite_errorcode", 0) & _PRIMARY_CODE
            if code in _BUSY:
                raise RetriableError(
                    f"{place} Another program is writing; it is waited for."
                ) from error
            raise TaskFailedError(
                f"{place} Check that database is the path of a SQLite file that can be read on every machine "
                "with slots, and that where is an expression of its columns."
            ) from error


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _column(field: pa.Field) -> str:
    """What is selected of a column: text of one whose values may be of any type."""
    name = _quoted(field.name)
    return f"CAST({name} AS TEXT)" if pa.types.is_large_string(field.type) else name


def _arrow(declared: str) -> pa.DataType:
    """The type of a column, by SQLite's rules of affinity; ``large_utf8`` where values may be of any type."""
    kind = declared.upper()
    if "INT" in kind:
        return pa.int64()
    if any(word in kind for word in ("CHAR", "CLOB", "TEXT")):
        return pa.utf8()
    if "BLOB" in kind:
        return pa.binary()
    if any(word in kind for word in ("REAL", "FLOA", "DOUB")):
        return pa.float64()
    return pa.large_utf8()
