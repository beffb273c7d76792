"""Settings that nothing of what is read can use are refused, and others are not."""

from __future__ import annotations

import pytest

from headrace.connectors.files.aiven.config import AivenS3Config
from headrace.connectors.files.config import FilesConfig

AIVEN = {
    "aws.s3.bucket.name": "books",
    "file.name.template": "{{topic}}-{{partition}}-{{start_offset}}",
    "topic": "t",
}


def problems(**props: str) -> list[tuple[str, str]]:
    """Of a configuration."""
    given = {key.replace("_", "."): value for key, value in props.items()}
    return list(FilesConfig.problems({"files.path": "/in", "topic": "t", **given}))


@pytest.mark.parametrize(
    ("key", "value", "props"),
    [
        ("csv.null", "-", {"files_format": "jsonl"}),
        ("csv.names", "a,b", {"files_path": "/in/*.avro,/in/*.parquet"}),
        ("parquet.columns", "a", {"files_format": "jsonl"}),
        ("json.null", "tombstone", {"files_format": "csv"}),
        ("json.null", "value", {"files_path": "/in/*.csv.gz"}),
        ("avro.max.block.bytes", "2048", {"files_format": "parquet"}),
        ("files.bytes.per.record", "10", {"files_format": "lines"}),
        ("files.encoding", "latin-1", {"files_path": "/in/*.avro"}),
        ("files.follow", "true", {"files_format": "parquet"}),
        ("files.follow", "true", {"files_path": "/in/*.parquet"}),
        ("files.changed", "tail", {"files_path": "/in/*.parquet"}),
        ("files.changed", "tail", {"files_path": "/in/*.jsonl.gz"}),
        ("files.headers", "position", {"files_format": "avro"}),
        ("files.headers", "position", {"files_format": "bytes"}),
        ("files.fields", "record,position", {"files_path": "/in/*.parquet"}),
    ],
)
def test_what_surely_has_no_effect_is_refused(key: str, value: str, props: dict[str, str]):
    """With what to do, and one problem for each."""
    ((found, told),) = problems(**{key: value}, **props)

    assert key == found
    assert "emove" in told


@pytest.mark.parametrize(
    ("key", "value", "props"),
    [
        ("csv.null", "-", {}),
        ("csv.null", "-", {"files_path": "/in/*.csv,/in/*.avro"}),
        ("csv.null", "-", {"files_path": "/in/*.avro,/in/rest"}),
        ("parquet.columns", "a", {"files_format": "parquet"}),
        ("json.null", "tombstone", {"files_path": "/in/*.ndjson"}),
        ("files.follow", "true", {"files_path": "/in/*.jsonl.gz,/in/*.jsonl"}),
        ("files.follow", "true", {"files_format": "avro"}),
        ("files.follow", "true", {"files_path": "/in/*.gz", "files_compression": "none"}),
        ("files.follow", "false", {"files_format": "parquet"}),
        ("files.changed", "tail", {"files_path": "/in/*.jsonl"}),
        ("files.fields", "position", {"files_path": "/in/*.csv,/in/*.avro"}),
        ("files.headers", "position", {}),
    ],
)
def test_what_may_have_an_effect_is_accepted(key: str, value: str, props: dict[str, str]):
    """Where only the files tell, or some of them may use it."""
    assert [] == problems(**{key: value}, **props)


@pytest.mark.parametrize("form", ["avro", "bytes", "csv", "jsonl", "parquet"])
def test_what_the_original_is_translated_to_is_nobodys_fault(form: str):
    """What users set themselves is."""
    props = {**AIVEN, "input.format": form}

    assert [] == list(AivenS3Config.problems(props))
    found = [key for key, _ in AivenS3Config.problems({**props, "csv.null": "-"})]
    assert ([] if form == "csv" else ["csv.null"]) == found
