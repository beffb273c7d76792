"""What a state file holds, read without becoming its owner: a worker may be running on it."""

from __future__ import annotations

import sqlite3
from collections.abc import Generator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from urllib.parse import quote

from headrace.connect.errors import ConfigError
from headrace.connect.partition import SourceOffset, SourcePartition
from headrace.storage.offset_index import OffsetIndex


def seen_setting(path: Path, key: str) -> str | None:
    """A fact about the worker; ``None`` when nobody has written it, or there is no file at *path*.

    Raises :class:`~headrace.connect.errors.ConfigError` for a file that is not a state file.
    """
    with _opened(path) as connection:
        if connection is None:
            return None
        rows = connection.execute("select value from settings where key = ?", (key,)).fetchall()
    return str(rows[0][0]) if rows else None


def seen_offsets(path: Path, connector: str) -> Mapping[SourcePartition, SourceOffset]:
    """The offsets of *connector* in the file at *path*; raises as :func:`seen_setting`."""
    index = OffsetIndex()
    with _opened(path) as connection:
        if connection is None:
            return {}
        rows = connection.execute("select key, value from offsets order by rowid").fetchall()
    index.follow(rows)
    return index.known(connector)


@contextmanager
def _opened(path: Path) -> Generator[sqlite3.Connection | None]:
    if not path.exists():
        yield None
        return
    # Without a log beside it nobody writes it now, and SQLite would make files there to read it as usual.
    is_still = not Path(f"{path}-wal").exists()
    address = f"file:{quote(str(path.absolute()))}?mode=ro{'&immutable=1' if is_still else ''}"
    try:
        with closing(sqlite3.connect(address, uri=True)) as connection:
            yield connection
    except sqlite3.Error as error:
        told = f"cannot be read as a state file: {error}."
        raise ConfigError([(str(path), told)], where="The worker's state file") from error
