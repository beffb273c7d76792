"""Writes an order into the table that first_connector.py reads: python examples/order.py tea 3."""

from __future__ import annotations

import sqlite3
import sys
from contextlib import closing
from pathlib import Path

DATABASE = Path(".cache/orders.db")


def main() -> None:
    """Write one order; the table is made by the first."""
    item, pieces = sys.argv[1], int(sys.argv[2])
    DATABASE.parent.mkdir(exist_ok=True)
    with closing(sqlite3.connect(DATABASE)) as database, database:
        database.execute("CREATE TABLE IF NOT EXISTS orders (item, pieces)")
        database.execute("INSERT INTO orders VALUES (?, ?)", (item, pieces))


if __name__ == "__main__":
    main()
