"""The first connector of the README, run for real with the configurations beside it."""

from __future__ import annotations

import json
import sqlite3
import uuid
from contextlib import closing
from functools import partial
from pathlib import Path

import once
import pytest

from headrace.testing.judge import committed_records


def place(database: Path, *orders: tuple[str, int]):
    """Write orders as the example's own command does."""
    with closing(sqlite3.connect(database)) as opened, opened:
        opened.execute("CREATE TABLE IF NOT EXISTS orders (item, pieces)")
        opened.executemany("INSERT INTO orders VALUES (?, ?)", orders)


run_once = partial(
    once.run_once,
    worker="worker.json",
    connector="first_connector.json",
    place={"database": "orders.db"},
    slots=1,
)


@pytest.mark.broker
def test_first_connector(bootstrap: str, tmp_path: Path):
    """Every order is sent once, also when the connector is run again after more were placed."""
    topic = f"orders-{uuid.uuid4().hex[:8]}"
    place(tmp_path / "orders.db", ("tea", 3), ("rice", 1))
    run_once(bootstrap, tmp_path, topic)
    place(tmp_path / "orders.db", ("salt", 7))

    run_once(bootstrap, tmp_path, topic)

    found = [json.loads(record.value or b"") for record in committed_records(bootstrap, topic)]
    assert [
        {"item": "tea", "pieces": 3},
        {"item": "rice", "pieces": 1},
        {"item": "salt", "pieces": 7},
    ] == found
