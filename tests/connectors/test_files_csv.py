"""CSV files with types and schemas: what restarts keep, what they refuse, what converters make of it."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import get_args, get_type_hints

import pytest
from fastavro import parse_schema

from converters.avro_examples import whole
from headrace.connect import (
    ConfigError,
    OffsetsError,
    RecordError,
    SourceOffset,
    SourcePartition,
    TaskFailedError,
)
from headrace.connectors.files.config import FilesConfig
from headrace.connectors.files.connector import FilesConnector
from headrace.converters import make_converter
from headrace.formats.by_name import FORMATS
from headrace.testing.schema_registry import SchemaRegistry
from headrace.testing.task_runs import LocalRun

Stored = dict[SourcePartition, SourceOffset]
CONTENT = b"id,price,name\n1,0.50,a\n2,,b\n3,7,\n"


Props = dict[str, str]


def run(path: Path, stored: Stored, stop_after: int | None = None, **props: str) -> list[object]:
    """The values that a run over *path* delivers."""
    given = {"files.path": str(path), "topic": "t", "files.min.age.ms": "0"}
    named = {key.replace("_", "."): value for key, value in props.items()}
    made = LocalRun(FilesConnector(), {**given, **named}, stored, stop_after=stop_after)
    return [each.value for each in made.until_idle()]


def written(folder: Path, content: bytes = CONTENT, name: str = "a.csv") -> Path:
    """A file of *content*."""
    path = folder / name
    path.write_bytes(content)
    return path


@pytest.mark.parametrize("name", ["a.csv", "a.csv.gz"])
@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"])
@pytest.mark.parametrize("stop_after", [1, 2, 3])
def test_inferred_structs_go_on_behind_each_record(
    tmp_path: Path, name: str, mark: bytes, stop_after: int
):
    """With the types that the first run found, whatever is appended; the done entry keeps them, too."""
    content = mark + CONTENT
    path = written(tmp_path, gzip.compress(content) if name.endswith("gz") else content, name)
    stored: Stored = {}
    props = {"csv_types": "infer", "csv_schemas_enable": "true", "files_batch_max_bytes": "4096"}

    first = run(path, stored, stop_after, **props)
    rest = run(path, stored, **props)

    assert [
        {"id": 1, "price": 0.5, "name": "a"},
        {"id": 2, "price": None, "name": "b"},
        {"id": 3, "price": 7.0, "name": ""},
    ] == first + rest
    assert '["integer","number","string"]' == stored[SourcePartition(filename=str(path))]["types"]


def test_a_file_that_becomes_old_enough_keeps_its_types(tmp_path: Path):
    """The plan's own entry has them as well."""
    path = written(tmp_path, b"n\n1\n")
    stored: Stored = {}
    props = {"csv_types": "infer", "files_follow": "true"}

    assert ['{"n":1}'] == run(path, stored, 1, files_min_age_ms="60000", **props)
    assert [] == run(path, stored, **props)

    (offset,) = stored.values()
    assert (True, '["integer"]') == (offset.get("done"), offset["types"])


def test_a_header_alone_of_a_file_that_grows_tells_no_types(tmp_path: Path):
    """The first row does, in whichever round it comes."""
    path = written(tmp_path, b"n\n")
    stored: Stored = {}
    props = {"csv_types": "infer", "files_follow": "true"}

    assert [] == run(path, stored, **props)
    written(tmp_path, b"n\n1\n")
    assert ['{"n":1}'] == run(path, stored, **props)


def test_a_file_that_grows_keeps_its_types(tmp_path: Path):
    """A record that does not fit them is an error, and no other schema."""
    path = written(tmp_path, b"n\n1\n")
    stored: Stored = {}
    props = {"csv_types": "infer", "csv_schemas_enable": "true", "files_follow": "true"}

    assert [{"n": 1}] == run(path, stored, **props)
    written(tmp_path, b"n\n1\n2\n")
    assert [{"n": 2}] == run(path, stored, **props)
    written(tmp_path, b"n\n1\n2\nx\n")
    with pytest.raises(RecordError, match=r"'n' holds 'x', which is not of type integer"):
        run(path, stored, **props)


def test_a_sample_does_not_cost_the_proof_of_what_was_sent(tmp_path: Path):
    """However much larger it is than a batch, a change before the place is still noticed."""
    rows = [b"%d\n" % number for number in range(100_000, 300_000)]
    path = written(tmp_path, b"number\n" + b"".join(rows))
    stored: Stored = {}
    props = {"csv_types": "infer", "files_batch_max_bytes": "4096", "files_max_line_bytes": "100"}

    assert 600 == len(run(path, stored, 600, **props))
    (offset,) = stored.values()
    assert isinstance(offset["anchor"], int)
    assert isinstance(offset["checked"], int)
    assert offset["anchor"] - 4096 < offset["checked"] <= offset["anchor"]
    written(tmp_path, b"number\n" + b"9" + b"".join(rows)[1:])

    with pytest.raises(TaskFailedError, match="replaced"):
        run(path, stored, **props)


@pytest.mark.parametrize(
    "changed",
    [
        {"csv_delimiter": ";"},
        {"csv_names": "a,b,c"},
        {"csv_types": "id:integer"},
        {"csv_types": "infer"},
        {"csv_schemas_enable": "true"},
        {"csv_null": "NA"},
        {"csv_comment": "#"},
        {"csv_skip_lines": "1"},
        {"csv_trim": "true"},
        {"files_encoding": "latin-1"},
    ],
)
def test_a_half_read_file_does_not_go_on_otherwise(tmp_path: Path, changed: dict[str, str]):
    """Under another dialect, other names or another schema."""
    path = written(tmp_path)
    stored: Stored = {}
    run(path, stored, 1)

    with pytest.raises(TaskFailedError, match=r"It was read as csv .* and cannot go on as csv"):
        run(path, stored, **changed)


def test_a_half_read_file_does_not_go_on_under_another_header(tmp_path: Path):
    """It is another file then."""
    path = written(tmp_path)
    stored: Stored = {}
    run(path, stored, 1)
    written(tmp_path, CONTENT.replace(b"price", b"costs"))

    with pytest.raises(TaskFailedError, match="replaced"):
        run(path, stored)


def test_whoever_meets_a_short_row_can_have_it_filled(tmp_path: Path):
    """And goes on where it failed."""
    path = written(tmp_path, b"a,b\n1,2\n3\n4,5\n")
    stored: Stored = {}
    with pytest.raises(RecordError, match=r"has 1 field, but 2 .* csv\.ragged=fill"):
        run(path, stored)

    assert ['{"a":"3","b":null}', '{"a":"4","b":"5"}'] == run(path, stored, csv_ragged="fill")


def test_rows_that_are_too_long_can_be_cut(tmp_path: Path):
    """And read on with where one failed."""
    path = written(tmp_path, b"a,b\n1,2\n3,4,5\n6\n")
    stored: Stored = {}
    with pytest.raises(RecordError, match=r"has 3 fields, but 2 .* csv\.ragged=cut"):
        run(path, stored)

    assert ['{"a":"3","b":"4"}', '{"a":"6","b":null}'] == run(path, stored, csv_ragged="fit")


def test_the_avro_converter_takes_rows_with_a_schema(tmp_path: Path):
    """Fields are unions with null; decimals keep their scale."""
    path = written(tmp_path)
    props = {
        "files.path": str(path),
        "topic": "t",
        "files.min.age.ms": "0",
        "csv.types": "id:integer,price:decimal(2)",
        "csv.schemas.enable": "true",
    }
    made = LocalRun(FilesConnector(), props, {})
    made._connector.start(props)
    (task,) = made._tasks()
    (batch, *_) = task.poll()
    task.stop()

    with SchemaRegistry() as registry:
        avro = make_converter("avro", {"schema.registry.url": registry.url}, is_key=False)
        (first, *_) = avro.encode("t", batch.value_schema, batch.values).to_pylist()
        told = registry.schema(1)

    types = [each["type"] for each in told["fields"]]
    assert [["null", "long"], ["null", "string"]] == [types[0], types[2]]
    assert ("null", "bytes", "decimal", 2) == (
        types[1][0],
        *(types[1][1][key] for key in ("type", "logicalType", "scale")),
    )
    found = whole(first[5:], parse_schema(told))
    assert (1, "0.50", "a") == (found["id"], str(found["price"]), found["name"])


@pytest.mark.parametrize(
    ("props", "key"),
    [
        ({"csv.types": "a:datetime"}, "csv.types"),
        ({"csv.types": "a:decimal(38)"}, "csv.types"),
        ({"csv.types": ":integer"}, "csv.types"),
        ({"csv.types": "inferred"}, "csv.types"),
        ({"csv.infer.bytes": "2000"}, "csv.infer.bytes"),
        ({"csv.infer.bytes": "1", "csv.types": "infer"}, "csv.infer.bytes"),
        ({"csv.ragged": "keep"}, "csv.ragged"),
        ({"json.null": "nothing"}, "json.null"),
    ],
)
def test_what_makes_no_sense_is_refused(props: dict[str, str], key: str):
    """With the key that is wrong."""
    with pytest.raises(ConfigError) as caught:
        FilesConfig.parse({"files.path": "/x", "topic": "t", **props})

    assert [key] == [name for name, _ in caught.value.problems]


def test_every_format_can_be_named():
    """There is one table of them."""
    assert {"auto", *FORMATS} == {*get_args(get_type_hints(FilesConfig)["format"])}


def test_types_in_an_offset_are_text(tmp_path: Path):
    """As a person may set them."""
    partition = SourcePartition(filename="/x/a.csv")
    connector = FilesConnector()

    connector.validate_offsets({}, {partition: {"anchor": 3, "types": '["string"]'}})
    with pytest.raises(OffsetsError, match="'types'; it must be a string"):
        connector.validate_offsets({}, {partition: {"anchor": 3, "types": 1}})


def test_a_null_line_can_be_a_tombstone(tmp_path: Path):
    """Whatever blanks are around it; by default it is a value as any other."""
    path = written(tmp_path, b'null\n\n null\n{"a":null}\n', "a.jsonl")

    assert ["null", " null", '{"a":null}'] == run(path, {})
    assert [None, None, '{"a":null}'] == run(path, {}, json_null="tombstone")


def test_an_envelope_does_not_change_a_document(tmp_path: Path):
    """Numbers, order and names that come twice stay in the JSON converter with schemas, too."""
    line = b'{"b":123456789012345678901234567890,"a":1.10e400,"b":0.10000000000000000000001}'
    path = written(tmp_path, line + b"\n", "a.jsonl")
    props = {"files.path": str(path), "topic": "t", "files.min.age.ms": "0"}
    made = LocalRun(FilesConnector(), props, {})
    made._connector.start(props)
    (task,) = made._tasks()
    (batch,) = task.poll()
    task.stop()
    converter = make_converter("json", {"schemas.enable": "true"}, is_key=False)

    found = converter.encode("t", batch.value_schema, batch.values)

    assert [b'{"schema":null,"payload":' + line + b"}"] == found.to_pylist()
