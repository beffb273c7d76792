"""One schema for the records of files whose own ones differ."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from connectors.files_steps import Steps
from headrace.connect.errors import TaskFailedError
from headrace.connectors.files.config import FilesConfig
from sources.avro_files import avro_file


def avro(*fields: object) -> dict[str, object]:
    """A record type."""
    return {"type": "record", "name": "Point", "fields": [*fields]}


X, OLD = {"name": "x", "type": "int"}, {"name": "old", "type": "string"}
WANTED = json.dumps(
    avro({"name": "x", "type": ["null", "long"]}, {"name": "y", "type": ["null", "string"]})
)


def with_default(kind: object, default: object) -> dict[str, str]:
    """A configuration whose schema has a field *z* of *kind* with a *default*."""
    record = {
        "type": "record",
        "name": "Whole",
        "fields": [{"name": "z", "type": kind, "default": default}],
    }
    return {"files.schema": json.dumps(record)}


def test_files_of_all_formats_and_ages_get_it(tmp_path: Path):
    """Batch by batch, with fields of the connector's own behind it."""
    (tmp_path / "a.avro").write_bytes(avro_file(avro(X, OLD), [{"x": 1, "old": "o"}]))
    (tmp_path / "b.csv").write_text("y,x\nb,2\n")
    pq.write_table(pa.table({"x": pa.array([3, 4], pa.int8())}), tmp_path / "c.parquet")

    found = Steps(
        tmp_path,
        files_schema=WANTED,
        files_fields="record",
        csv_schemas_enable="true",
        csv_types="x:integer",
        files_batch_max_rows="1",
    ).batches()

    rows = [row for batch in found for row in batch.values.to_pylist()]
    expected = [(1, None, 1), (2, "b", 1), (3, None, 1), (4, None, 2)]
    assert [{"x": x, "y": y, "file_record": n} for x, y, n in expected] == rows
    assert all(batch.value_schema == found[0].value_schema for batch in found)


def test_without_it_each_file_keeps_its_own(tmp_path: Path):
    """Nothing is resolved."""
    (tmp_path / "a.avro").write_bytes(avro_file(avro(X, OLD), [{"x": 1, "old": "o"}]))

    (batch,) = Steps(tmp_path).batches()

    assert [{"x": 1, "old": "o"}] == batch.values.to_pylist()


def test_a_file_that_does_not_allow_it_fails_the_task(tmp_path: Path):
    """With its name, the field and what to do."""
    (tmp_path / "a.avro").write_bytes(
        avro_file(avro({"name": "x", "type": "string"}), [{"x": "1"}])
    )
    task = Steps(tmp_path, files_schema=WANTED).task()

    with pytest.raises(TaskFailedError, match=r"a\.avro: The field 'x' is string.*files\.schema"):
        task.poll()
    task.stop()


@pytest.mark.parametrize(
    ("props", "told"),
    [
        ({"files.schema": "{"}, "must be an Avro schema, as JSON: It is not JSON"),
        ({"files.schema": '"nothing"'}, "must be an Avro schema"),
        (with_default("int", "x"), """'z', "x", is no value of its type, which is int."""),
        (with_default("int", 2**31), "'z', 2147483648, is no value"),
        (with_default(["int", "null"], "x"), "which is int"),
        (with_default({"type": "enum", "name": "E", "symbols": ["A"]}, "B"), "which is E"),
        (with_default({"type": "fixed", "name": "F", "size": 2}, "abc"), "which is F"),
        (with_default(avro(X), {"x": "y"}), "which is Point"),
        ({"files.schema": WANTED, "files.format": "jsonl"}, "byte for byte"),
        ({"files.schema": WANTED, "files.path": "/in/*.txt"}, "get no schema"),
        ({"files.schema": WANTED, "files.format": "csv"}, "csv.schemas.enable=true"),
        ({"files.schema": WANTED, "files.path": "/in/*.csv"}, "csv.schemas.enable=true"),
    ],
)
def test_what_cannot_be_is_refused(props: dict[str, str], told: str):
    """By validation."""
    ((key, sentence),) = FilesConfig.problems({"files.path": "/in", "topic": "t", **props})

    assert "files.schema" == key
    assert told in sentence


def test_a_field_that_the_schema_has_is_refused():
    """Before a file is read."""
    props = {"files.path": "/in", "topic": "t", **with_default("int", 1), "files.fields": "name:z"}

    ((key, sentence),) = FilesConfig.problems(props)

    assert "files.fields" == key
    assert "two fields 'z'" in sentence
    assert "files.schema has it, too" in sentence
