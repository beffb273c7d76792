"""Writes a letter into the table that letters.py reads: python examples/letter.py 'Dear reader,' 'all is well.'."""

from __future__ import annotations

import sqlite3
import sys
from contextlib import closing
from pathlib import Path

DATABASE = Path(".cache/letters.db")


def main() -> None:
    """Write one letter, of a line for each argument; the table is made by the first."""
    content = "".join(f"{line}\n" for line in sys.argv[1:])
    DATABASE.parent.mkdir(exist_ok=True)
    with closing(sqlite3.connect(DATABASE)) as database, database:
        database.execute(
            "CREATE TABLE IF NOT EXISTS letters (id INTEGER PRIMARY KEY, content BLOB)"
        )
        database.execute("INSERT INTO letters (content) VALUES (?)", (content.encode(),))


if __name__ == "__main__":
    main()
