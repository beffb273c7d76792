"""New rows of a SQLite table."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from headrace.connect.errors import (
    ConnectError,
    OffsetsError,
    RecordError,
    RetriableError,
    TaskFailedError,
)
from headrace.connect.partition import SourcePartition
from headrace.connect.schema import SchemaType
from headrace.connectors.sqlite_table import SqliteConnector, SqliteTask
from headrace.task.connector_spec import ErrorPolicy
from headrace.testing.task_runs import (
    LocalConnectorContext,
    LocalContext,
    LocalRun,
    Stored,
    StoredOffsets,
)
from task.local_loop import Rounds


class Orders:
    """The table ``orders`` of a database, and the settings of a connector that reads it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.partition = SourcePartition(database=str(path), table="orders")
        self.props = {"database": str(path), "table": "orders", "topic": "t"}
        self.write(
            "CREATE TABLE orders (id INTEGER PRIMARY KEY AUTOINCREMENT, item TEXT NOT NULL, pieces INT, "
            "price REAL, photo BLOB, at DATE)"
        )

    def write(self, *statements: str) -> None:
        """Change the database, as another program does."""
        with closing(sqlite3.connect(self.path)) as opened, opened:
            for each in statements:
                opened.execute(each)

    def place(self, *items: str) -> None:
        """One row for each of *items*."""
        self.write(*(f"INSERT INTO orders (item) VALUES ('{each}')" for each in items))

    def read(self, stored: Stored, **props: str) -> list[str]:
        """The items that a run sends."""
        run = LocalRun(SqliteConnector(), {**self.props, **props}, stored)
        return [each.value["item"] for each in run.until_idle()]


@pytest.fixture
def orders(tmp_path: Path) -> Orders:
    """An empty table."""
    return Orders(tmp_path / "orders's #1.db")


@pytest.fixture
def task(orders: Orders) -> Iterator[SqliteTask]:
    """A task that is started, and reads one row at a time."""
    made = SqliteTask()
    made.initialize(LocalContext(offsets=StoredOffsets({})))
    made.start({**orders.props, "batch.rows": "1"})
    yield made
    made.stop()


def test_a_row_is_a_struct_of_its_columns(orders: Orders) -> None:
    """Whatever has no type of its own in SQLite is text."""
    orders.write(
        "INSERT INTO orders (item, pieces, price, photo, at) VALUES ('tea', 3, 1.5, x'00ff', '2026-01-02')"
    )

    (found,) = LocalRun(SqliteConnector(), orders.props, {}).until_idle()

    assert {
        "id": 1, "item": "tea", "pieces": 3, "price": 1.5, "photo": b"\x00\xff", "at": "2026-01-02",
    } == found.value  # fmt: skip
    assert (orders.partition, {"id": 1}) == (found.partition, found.offset)


def test_the_schema_says_what_may_be_missing(orders: Orders, task: SqliteTask) -> None:
    """Only columns that are declared so may not."""
    orders.place("tea")
    batch = task.poll()

    assert batch is not None
    assert batch.value_schema is not None
    assert {
        "id": (SchemaType.INT64, False),
        "item": (SchemaType.STRING, False),
        "pieces": (SchemaType.INT64, True),
        "price": (SchemaType.FLOAT64, True),
        "photo": (SchemaType.BYTES, True),
        "at": (SchemaType.STRING, True),
    } == {each.name: (each.schema.type, each.schema.optional) for each in batch.value_schema.fields}


def test_each_row_is_read_once(orders: Orders) -> None:
    """In the order of ids, however few are looked at at a time."""
    stored: Stored = {}
    orders.place("a", "b", "c")
    first = orders.read(stored, **{"batch.rows": "2"})
    orders.place("d")

    assert (["a", "b", "c"], ["d"]) == (first, orders.read(stored))


def test_the_position_moves_past_rows_that_do_not_match(orders: Orders) -> None:
    """So that a restart does not look at them again."""
    stored: Stored = {}
    orders.place(*"abcde")

    assert [] == orders.read(stored, where="item = 'z' OR 0", **{"batch.rows": "2"})
    assert {orders.partition: {"id": 5}} == stored
    assert [] == orders.read(stored)


def test_no_more_rows_are_held_than_allowed(orders: Orders, task: SqliteTask) -> None:
    """A window at a time."""
    orders.place("a", "b")

    assert [1, 1] == [len(batch) for batch in (task.poll(), task.poll()) if batch is not None]


def test_a_task_tells_its_position_only_once_it_has_one(orders: Orders, task: SqliteTask) -> None:
    """An empty table has no offset."""
    task.context.asked_to_stop = True  # type: ignore[attr-defined]

    assert (None, None) == (task.poll(), task.update_offsets({}))


def test_an_idle_source_costs_a_look(orders: Orders) -> None:
    """The probe knows whether there is a row that was not looked at."""
    connector = SqliteConnector()
    connector.initialize(LocalConnectorContext(StoredOffsets({})))
    connector.start(orders.props)
    orders.place("a")

    at = [StoredOffsets({orders.partition: {"id": each}}) for each in (0, 1)]
    assert [True, False] == [connector.has_work(each) for each in at]
    connector.stop()


@pytest.mark.parametrize(
    ("props", "sentence"),
    [
        ({"database": "/none/x.db"}, "unable to open database file.* Check that database"),
        ({"table": "none"}, "has no table none. Correct table"),
        ({"id.column": "none"}, "has no column none, only id, item.* Correct id.column"),
        ({"id.column": "item"}, "item is declared as TEXT.* Choose another id.column"),
        ({"where": "none = 1"}, "no such column: none.* where is an expression"),
        ({"where": "1; DROP TABLE orders"}, "where is an expression"),
    ],
)
def test_what_is_missing_is_told_at_the_start(
    orders: Orders, props: dict[str, str], sentence: str
) -> None:
    """Before a slot is taken."""
    with pytest.raises(TaskFailedError, match=sentence):
        SqliteConnector().start({**orders.props, **props})


def test_a_locked_database_is_waited_for(orders: Orders, task: SqliteTask) -> None:
    """Another program is writing."""
    with closing(sqlite3.connect(orders.path, isolation_level=None)) as writer:
        writer.execute("BEGIN EXCLUSIVE")
        with pytest.raises(RetriableError, match="database is locked"):
            task.poll()
        writer.execute("ROLLBACK")
    orders.place("a")

    assert task.poll() is not None


def test_a_value_of_another_type_is_an_error_with_its_place(orders: Orders) -> None:
    """What precedes it is sent."""
    stored: Stored = {}
    orders.place("a")
    orders.write("INSERT INTO orders (item, pieces) VALUES ('b', 'many')")

    with pytest.raises(RecordError, match="table orders, id 2: a value is not of the type"):
        orders.read(stored)

    assert {orders.partition: {"id": 1}} == stored


def test_a_value_of_another_type_can_be_passed_over(orders: Orders) -> None:
    """The rows around it arrive."""
    orders.place("a")
    orders.write("INSERT INTO orders (item, pieces) VALUES ('b', 'many')")
    orders.place("c")
    rounds = Rounds(
        SqliteConnector, orders.props, ErrorPolicy(tolerate=True), value_converter="json"
    )

    rounds.play()

    assert (2, 1, {"id": 3}) == (
        len(rounds.values("t")), rounds.tolerated, rounds.stored[orders.partition],
    )  # fmt: skip


@pytest.mark.parametrize("at", range(6))
def test_a_kill_wherever_it_comes_doubles_and_loses_nothing(orders: Orders, at: int) -> None:
    """Rows that match and rows that do not, before and behind it."""
    orders.place(*"aXbXXc")
    props = {**orders.props, "where": "item <> 'X'", "batch.rows": "2"}
    rounds = Rounds(SqliteConnector, props, ErrorPolicy(), value_converter="json")
    rounds.play(killed_at=at)
    rounds.play()

    items = [value.decode().partition('"item":"')[2][0] for value in rounds.values("t") if value]
    assert (["a", "b", "c"], {"id": 6}) == (items, rounds.stored[orders.partition])


@pytest.mark.parametrize("offset", [{}, {"id": "1"}, {"id": True}])
def test_offsets_are_ids(orders: Orders, offset: dict[str, object]) -> None:
    """Anything else is refused with a sentence, when it is set and when it is read."""
    with pytest.raises(OffsetsError, match="with an integer"):
        SqliteConnector().validate_offsets(orders.props, {orders.partition: offset})  # type: ignore[dict-item]
    with pytest.raises(ConnectError, match="with an integer"):
        orders.read({orders.partition: offset})  # type: ignore[dict-item]


def test_offsets_of_another_table_are_refused(orders: Orders) -> None:
    """They would have no effect."""
    with pytest.raises(OffsetsError, match="The source partition must be"):
        SqliteConnector().validate_offsets(orders.props, {SourcePartition(table="x"): {"id": 1}})
