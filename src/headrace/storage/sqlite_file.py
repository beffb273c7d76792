"""The SQLite file of a worker: opened by one process at a time, private to its owner; others may read it."""

from __future__ import annotations

import fcntl
import os
import sqlite3
import threading
from collections.abc import Generator, Mapping, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from urllib.parse import quote

from headrace.connect.errors import ConfigError, RetriableError
from headrace.connect.partition import SourceOffset, SourcePartition
from headrace.offsets.index import OffsetIndex

# "HdRc": distinguishes our files from other programs' SQLite files.
_APPLICATION_ID = 0x48645263

# A file of version n is brought up to date by the scripts after the n-th.
_SCHEMAS = (
    f"""
pragma application_id={_APPLICATION_ID};
create table offsets (key blob primary key, value blob not null);
create table connectors (name text primary key, config text not null, target_state text not null);
create table task_counts (connector text primary key, slots integer not null, clean integer not null);
create table settings (key text primary key, value text not null);
create table statuses (
    connector text not null, task integer not null, status text not null, primary key (connector, task)
);
""",
    """
create table changes (
    id integer primary key autoincrement, connector text not null, operation text not null, who text,
    at_ms integer not null, before text not null, after text not null, done integer not null,
    undoes integer
);
create index changes_of on changes (connector, id);
create table intents (change integer primary key, phase text not null, config text, target_state text);
""",
    """
create table task_configs (connector text primary key, configs text not null);
create table topics (connector text not null, topic text not null, primary key (connector, topic));
""",
    """
alter table changes add column of_deleted integer not null default 0;
""",
)

SELECT_OFFSETS = "select key, value from offsets order by rowid"
SELECT_SETTING = "select value from settings where key = ?"

Parameters = Sequence[str | int | bytes | None]
Statement = tuple[str, Parameters]


_WHERE = "The worker's state file"


class FileInUseError(ConfigError):
    """Another process, the *holder* by its id, has the state file at *path* open."""

    def __init__(self, path: Path, reason: str, holder: str) -> None:
        self.holder = holder
        super().__init__([(str(path), reason)], where=_WHERE)


class SqliteFile:
    """Reads and writes one file at *path*, created if it is missing, with mode 0600.

    A file that was created and never written to is removed when it is closed. Any thread may call: a lock
    serialises them, because they share one connection. Raises :class:`~headrace.connect.errors.ConfigError`
    when another process has the file, or when it is damaged or not ours; methods raise
    :class:`~headrace.connect.errors.RetriableError` when the disk fails.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = threading.RLock()
        self._is_together = False
        self._lock_file = _locked(path)
        self._is_unused = not path.exists()
        try:
            self._connection = _opened(path)
        except BaseException:
            os.close(self._lock_file)
            raise

    def rows(self, query: str, parameters: Parameters = ()) -> list[tuple[object, ...]]:
        """All rows that *query* finds."""
        with self._lock, self._retriable_errors():
            return self._connection.execute(query, parameters).fetchall()

    def write(self, *statements: Statement) -> None:
        """Run *statements* as one transaction; on return it survives a power cut, except within :meth:`together`."""
        with self._lock, self._retriable_errors():
            if self._is_together:
                self._execute(statements)
                return
            with self._connection:
                self._connection.execute("begin immediate")
                self._execute(statements)

    @contextmanager
    def together(self) -> Generator[None]:
        """Make one transaction of all writes of this thread in the block; other threads wait. Not nested.

        It survives a power cut once the block has ended; a block that raises writes nothing.
        """
        with self._lock, self._retriable_errors(), self._connection:
            self._connection.execute("begin immediate")
            self._is_together = True
            try:
                yield
            finally:
                self._is_together = False

    def _execute(self, statements: Sequence[Statement]) -> None:
        self._is_unused = False
        for statement, parameters in statements:
            self._connection.execute(statement, parameters)

    def close(self) -> None:
        """Close the file and let another process have it."""
        with self._lock:
            self._connection.close()
            if self._lock_file < 0:
                return
            if self._is_unused:
                self._path.unlink(missing_ok=True)
                _lock_path(self._path).unlink(missing_ok=True)
            os.close(self._lock_file)
            self._lock_file = -1

    @contextmanager
    def _retriable_errors(self) -> Generator[None]:
        try:
            yield
        except sqlite3.Error as error:
            raise RetriableError(
                f"{self._path}: {error}. Check that the disk is available and not full."
            ) from error


def _locked(path: Path) -> int:
    """An open file that holds the lock; the lock ends with the process, however it ends."""
    try:
        lock_file = os.open(_lock_path(path), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise _problem(path, f"cannot be used: {error.strerror}.") from error
    try:
        fcntl.flock(lock_file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        holder = os.pread(lock_file, 20, 0).decode().strip() or "unknown"
        os.close(lock_file)
        reason = f"is in use by the process {holder}. Stop that one, or give this one another file."
        raise FileInUseError(path, reason, holder) from error
    if not os.fstat(lock_file).st_nlink:
        # The former holder has just removed the lock file: another process would lock a new one.
        os.close(lock_file)
        return _locked(path)
    os.ftruncate(lock_file, 0)
    os.pwrite(lock_file, f"{os.getpid()}\n".encode(), 0)
    return lock_file


def _lock_path(path: Path) -> Path:
    return path.with_name(f"{path.name}.lock")


def _opened(path: Path) -> sqlite3.Connection:
    try:
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
        _check_owner(path)
        # A copied file may have become readable for others; it holds passwords of connectors.
        path.chmod(0o600)
    except OSError as error:
        raise _problem(path, f"cannot be used: {error.strerror}.") from error
    connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    try:
        _prepare(connection, path)
    except sqlite3.Error as error:
        connection.close()
        raise _problem(path, f"is damaged ({error}). Restore a copy of it.") from error
    except BaseException:
        connection.close()
        raise
    return connection


def _check_owner(path: Path) -> None:
    """Refuse another program's file before SQLite changes it or creates files beside it."""
    with path.open("rb") as file:
        header = file.read(100)
    if not header:
        return
    if not header.startswith(b"SQLite format 3\0"):
        raise _problem(path, "is not a state file. Give headrace a file of its own.")
    if int.from_bytes(header[68:72]) != _APPLICATION_ID:
        raise _problem(path, "is another program's SQLite file. Give headrace a file of its own.")


def _prepare(connection: sqlite3.Connection, path: Path) -> None:
    version = connection.execute("pragma user_version").fetchone()[0]
    if version > len(_SCHEMAS):
        raise _problem(
            path,
            f"was written by a newer version of headrace (schema {version}). Upgrade headrace.",
        )
    connection.execute("pragma busy_timeout=5000")
    if version and connection.execute("pragma quick_check").fetchone()[0] != "ok":
        raise _problem(path, "is damaged. Restore a copy of it.")
    # Before the switch to a write-ahead log, so that the header of a new file has our application id from now on.
    for number, schema in enumerate(_SCHEMAS[version:], version + 1):
        connection.executescript(f"begin; {schema} pragma user_version={number}; commit;")
    connection.execute("pragma journal_mode=wal")
    # Offsets must not go back after a power cut.
    connection.execute("pragma synchronous=full")


def _problem(path: Path, sentence: str) -> ConfigError:
    return ConfigError([(str(path), sentence)], where=_WHERE)


def seen_setting(path: Path, key: str) -> str | None:
    """A fact about the worker; ``None`` if it was never written, or there is no file at *path*.

    Raises :class:`~headrace.connect.errors.ConfigError` for a file that is not a state file.
    """
    with _opened_to_look(path) as connection:
        if connection is None:
            return None
        rows = connection.execute(SELECT_SETTING, (key,)).fetchall()
    return str(rows[0][0]) if rows else None


def seen_offsets(path: Path, connector: str) -> Mapping[SourcePartition, SourceOffset]:
    """The offsets of *connector* in the file at *path*; raises as :func:`seen_setting`."""
    index = OffsetIndex()
    with _opened_to_look(path) as connection:
        if connection is None:
            return {}
        rows = connection.execute(SELECT_OFFSETS).fetchall()
    index.follow(rows)
    return index.known(connector)


@contextmanager
def _opened_to_look(path: Path) -> Generator[sqlite3.Connection | None]:
    if not path.exists():
        yield None
        return
    # Without a write-ahead log beside it, no one is writing; opened as usual, SQLite would create files there.
    is_still = not Path(f"{path}-wal").exists()
    address = f"file:{quote(str(path.absolute()))}?mode=ro{'&immutable=1' if is_still else ''}"
    try:
        with closing(sqlite3.connect(address, uri=True)) as connection:
            yield connection
    except sqlite3.Error as error:
        reason = f"cannot be read as a state file: {error}."
        raise ConfigError([(str(path), reason)], where="The worker's state file") from error
