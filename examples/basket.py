"""Writes lines of baskets into the table that baskets.py reads: python examples/basket.py tea paid."""

from __future__ import annotations

import sqlite3
import sys
from contextlib import closing
from pathlib import Path

DATABASE = Path(".cache/baskets.db")


def write(database: Path, *items: str) -> None:
    """Write a line for each of *items*; the table is made by the first."""
    database.parent.mkdir(exist_ok=True)
    with closing(sqlite3.connect(database)) as opened, opened:
        opened.execute("CREATE TABLE IF NOT EXISTS lines (item)")
        opened.executemany("INSERT INTO lines VALUES (?)", [(item,) for item in items])


if __name__ == "__main__":
    write(DATABASE, *sys.argv[1:])
