"""Parquet files through the connector: planned, read, cut anywhere, gone on with."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from headrace.connect import (
    ConfigError,
    PlanRequest,
    SourceOffset,
    SourcePartition,
    TaskFailedError,
)
from headrace.connectors.files.config import FilesConfig
from headrace.connectors.files.connector import FilesConnector
from headrace.connectors.files.task import FilesTask
from headrace.converters import make_converter
from headrace.testing.task_runs import Delivered, LocalContext, LocalRun, StoredOffsets

Stored = dict[SourcePartition, SourceOffset]
ROWS = [
    {"n": n, "price": Decimal(n).scaleb(-2), "tags": ["x"] * (n % 3), "at": None if n % 2 else n}
    for n in range(10)
]
SCHEMA = pa.schema(
    [
        ("n", pa.int32()),
        ("price", pa.decimal128(9, 2)),
        ("tags", pa.list_(pa.utf8())),
        ("at", pa.timestamp("ms", tz="UTC")),
    ]
)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A file of ten rows in row groups of four."""
    path = tmp_path / "a.parquet"
    pq.write_table(pa.Table.from_pylist(ROWS, SCHEMA), path, row_group_size=4)
    return path


def props(path: Path, **more: str) -> dict[str, str]:
    """The connector's configuration."""
    given = {key.replace("_", "."): value for key, value in more.items()}
    return {"files.path": str(path), "topic": "t", "files.min.age.ms": "0", **given}


def run(path: Path, stored: Stored, stop_after: int | None = None, **more: str) -> list[Delivered]:
    """Run until idle, or until that many records."""
    given = props(path, **more)
    return LocalRun(FilesConnector(), given, stored, stop_after=stop_after).until_idle()


def numbers(delivered: list[Delivered]) -> list[int]:
    """The field n of each record."""
    return [each.value["n"] for each in delivered]


def test_a_parquet_file_is_read_once_wherever_it_is_cut(path: Path):
    """By its extension, in batches of any size; done at its last record."""
    for rows in ("1", "3", "100"):
        for cut in range(1, 11):
            stored: Stored = {}
            first = run(path, stored, stop_after=cut, files_batch_max_rows=rows)
            rest = run(path, stored, files_batch_max_rows=rows)
            assert list(range(10)) == numbers(first + rest)
            assert [] == run(path, stored)
            assert stored[SourcePartition(filename=str(path))].get("done")


def test_records_are_structs_that_the_json_converter_writes(path: Path):
    """From the task's batches to what Kafka gets."""
    given = props(path, parquet_columns="at,price,tags")
    connector = FilesConnector()
    connector.start(given)
    plan = connector.plan(PlanRequest(slots=1, offsets=StoredOffsets({})))
    task = FilesTask()
    task.initialize(LocalContext(offsets=StoredOffsets({}), splits=plan.shares[0]))
    task.start(given)
    batches = task.poll()
    task.stop()
    assert batches
    settings = {"schemas.enable": "false", "decimal.format": "NUMERIC"}
    converter = make_converter("json", settings, is_key=False)
    told = converter.encode("t", batches[0].value_schema, batches[0].values)
    assert b'{"at":null,"price":0.01,"tags":["x"]}' == told[1].as_py()
    assert b'{"at":2,"price":0.02,"tags":["x","x"]}' == told[2].as_py()


def test_other_columns_in_the_middle_of_a_file_are_refused(path: Path):
    """Half of a file would have other fields than the rest."""
    stored: Stored = {}
    run(path, stored, stop_after=3)
    with pytest.raises(TaskFailedError, match="was read as parquet up to"):
        run(path, stored, parquet_columns="n")


def test_a_packed_parquet_file_is_refused(path: Path):
    """It is not read as a compressed stream."""
    packed = path.rename(path.with_name("a.parquet.gz"))
    with pytest.raises(TaskFailedError, match="not read out of gzip"):
        run(packed, {})


@pytest.mark.parametrize(
    ("key", "value"),
    [("files.compression", "gzip"), ("parquet.columns", "a,a")],
)
def test_settings_that_do_not_go_together_are_refused(key: str, value: str):
    """When the configuration is validated."""
    given = {"files.path": "in", "topic": "t", "files.format": "parquet", key: value}
    with pytest.raises(ConfigError) as caught:
        FilesConfig.parse(given)
    assert [key] == [found for found, _ in caught.value.problems]
