"""Fields that say where a record comes from, behind those of CSV rows and of structs."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from connectors.files_steps import Steps
from headrace.connect import SourceBatch
from headrace.connect.errors import TaskFailedError
from headrace.connect.schema import BOOLEAN, INT64, STRING
from headrace.connectors.files.config import FilesConfig
from headrace.converters import make_converter
from sources.avro_files import avro_file

ALL = "name,size,modified,record,position,last"
POINT = {
    "type": "record",
    "name": "Point",
    "fields": [{"name": "x", "type": "int"}, {"name": "y", "type": ["null", "string"]}],
}
POINTS = [{"x": 1, "y": None}, {"x": 2, "y": "two"}, {"x": 3, "y": "three"}]


def rows_of(batches: list[SourceBatch]) -> list[dict[str, object]]:
    """What each record holds."""
    values = [value for batch in batches for value in batch.values.to_pylist()]
    return [json.loads(value) if isinstance(value, str) else value for value in values]


@pytest.fixture(params=["docs.csv", "structs.csv", "a.avro", "a.parquet"])
def path(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A file of three points, changed a second after 1970 began."""
    made = tmp_path / request.param
    if made.suffix == ".csv":
        made.write_text("x,y\n1,\n2,two\n3,three\n")
    elif made.suffix == ".avro":
        made.write_bytes(avro_file(POINT, POINTS, per_block=2))
    else:
        pq.write_table(pa.Table.from_pylist(POINTS), made)
    os.utime(made, (1, 1))
    return made


def steps(path: Path, fields: str, **more: str) -> Steps:
    """Of a connector that reads *path*, in its folder: by a name, settings of other formats are refused."""
    structs = str(path.name == "structs.csv").lower()
    return Steps(
        path.parent,
        files_fields=fields,
        csv_null="",
        csv_types="x:integer",
        csv_schemas_enable=structs,
        **more,
    )


@pytest.mark.parametrize("rows", ["1", "2", "100"])
def test_records_say_where_they_come_from(path: Path, rows: str):
    """Behind their own fields, in whatever batches they come."""
    found = steps(path, ALL, files_batch_max_rows=rows).batches()

    places = [7, 13, 21] if path.suffix == ".csv" else None
    shared = {"file_name": str(path), "file_size": path.stat().st_size, "file_modified": 1000}
    expected = [
        {
            **point,
            **shared,
            "file_record": number,
            **({} if places is None else {"file_position": places[number - 1]}),
            "file_last": number == 3,
        }
        for number, point in enumerate(POINTS, 1)
    ]
    assert expected == rows_of(found)
    assert [list(each) for each in expected] == [list(each) for each in rows_of(found)]


def test_their_schema_has_them_as_optional_ones(path: Path):
    """So that a registry takes them for a new version."""
    found = steps(path, "record:row,name:source,last:is_last").batches()

    schema = found[0].value_schema
    if path.name == "docs.csv":
        assert schema is None
        return
    assert schema is not None
    told = {each.name: each.schema for each in schema.fields}
    added = {"source": STRING, "row": INT64, "is_last": BOOLEAN}
    assert ["x", "y", *added] == list(told)
    assert {name: each.as_optional() for name, each in added.items()}.items() <= told.items()
    assert {id(schema)} == {id(batch.value_schema) for batch in found}
    converter = make_converter("json", {"schemas.enable": "false"}, is_key=False)
    texts = [converter.encode("t", schema, batch.values).to_pylist() for batch in found]
    assert rows_of(found) == [json.loads(text) for each in texts for text in each]


def test_headers_may_say_the_same(path: Path):
    """Each says it in its way."""
    *_, last = steps(path, "last", files_headers="last").batches()

    assert last.headers is not None
    assert [True] == [header.value for header in last.headers[-1]]
    assert rows_of([last])[-1]["file_last"] is True


def test_a_young_file_waits_until_it_has_a_last_record(path: Path):
    """All of it."""
    os.utime(path)

    assert not steps(path, "last", files_min_age_ms="60000").plan().has_work()


def test_a_name_that_the_records_have_is_refused(path: Path):
    """When the first of them is read, for its schema tells it."""
    task = steps(path, "name:y").task()

    with pytest.raises(TaskFailedError, match=r"two fields 'y'.*name:y_2"):
        task.poll()
    task.stop()


def test_text_in_them_is_escaped(tmp_path: Path):
    """The documents are put together as text."""
    path = tmp_path / 'a"\\ü.csv'
    path.write_text("x\n1\n")

    found = steps(path, 'name:the "source"').batches()

    assert [{"x": 1, 'the "source"': str(path)}] == rows_of(found)


@pytest.mark.parametrize("name", ["a.jsonl", "a.txt"])
def test_a_file_whose_records_get_none_stops_the_plan(tmp_path: Path, name: str):
    """It is found in a folder, where validation does not see it."""
    (tmp_path / name).write_text("1\n")
    connector = Steps(tmp_path, files_fields="name")

    with pytest.raises(TaskFailedError, match=rf"{name}: .*Use files\.headers"):
        connector.plan()


def test_an_avro_file_of_plain_values_gets_none(tmp_path: Path):
    """Its records are no structs."""
    (tmp_path / "a.avro").write_bytes(avro_file("int", [1, 2]))
    task = Steps(tmp_path, files_fields="name").task()

    with pytest.raises(TaskFailedError, match=r"no structs.*Use files\.headers"):
        task.poll()
    task.stop()


@pytest.mark.parametrize(
    ("props", "told"),
    [
        ({"files.fields": "owner"}, "'owner' must be one of name, size"),
        ({"files.fields": "name:"}, "a colon and the field's name may follow"),
        ({"files.fields": "name,name:other"}, "Ask for each once"),
        ({"files.fields": "name:a,size:a"}, "a name of its own"),
        ({"files.fields": "name:id", "csv.names": "id,n"}, "csv.names names it"),
        ({"files.fields": "name:id", "parquet.columns": "id"}, "parquet.columns names it"),
        ({"files.fields": "last", "files.follow": "true"}, "may grow again"),
        ({"files.fields": "name", "files.format": "jsonl"}, "byte for byte"),
        ({"files.fields": "name", "files.format": "lines"}, "passed on as they are"),
        ({"files.fields": "name", "files.format": "bytes"}, "passed on as they are"),
        ({"files.fields": "name", "files.path": "/in/*.jsonl"}, "byte for byte"),
    ],
)
def test_fields_that_cannot_be_are_refused(props: dict[str, str], told: str):
    """By validation."""
    ((key, sentence),) = FilesConfig.problems({"files.path": "/in", "topic": "t", **props})

    assert "files.fields" == key
    assert told in sentence
