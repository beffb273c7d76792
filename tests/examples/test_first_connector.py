"""The first connector of the README, run for real with the configurations beside it."""

from __future__ import annotations

import json
import sqlite3
import uuid
from contextlib import closing
from pathlib import Path

import first_connector
import pytest

from headrace.admission import admitted, checked_worker
from headrace.standalone import standalone
from headrace.testing.judge import committed_records
from headrace.testing.process_engine import ProcessEngine

EXAMPLES = Path(first_connector.__file__).parent


def place(database: Path, *orders: tuple[str, int]):
    """Write orders as the example's own command does."""
    with closing(sqlite3.connect(database)) as opened, opened:
        opened.execute("CREATE TABLE IF NOT EXISTS orders (item, pieces)")
        opened.executemany("INSERT INTO orders VALUES (?, ?)", orders)


def run_once(bootstrap: str, folder: Path, topic: str):
    """Run it as `headrace run --once` does, with a process in place of Spark."""
    worker = json.loads((EXAMPLES / "worker.json").read_text())
    connector = json.loads((EXAMPLES / "first_connector.json").read_text())
    config = checked_worker(worker | {"bootstrap.servers": bootstrap, "group.id": topic})
    props = connector | {"database": str(folder / "orders.db"), "topic": topic}
    with standalone(
        config,
        [admitted(props, config)],
        state_file=folder / "state.db",
        tell=lambda _event: None,
        once=True,
        engine=ProcessEngine(slots=1, python_path=[str(EXAMPLES)]),
    ) as ready:
        ready.worker.start(ready.specs)
        assert {} == ready.worker.wait()


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
