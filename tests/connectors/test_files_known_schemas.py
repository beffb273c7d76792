"""What is known of the records of files before one is read."""

from __future__ import annotations

import json

import pytest

from headrace.connect.record import RecordSchemas
from headrace.connect.schema import BYTES, INT64, STRING, Field, Schema, SchemaType
from headrace.connectors.files.connector import FilesConnector

AVRO = json.dumps({"type": "record", "name": "Order", "fields": [{"name": "id", "type": "string"}]})


def order(*added: Field) -> Schema:
    """The schema, with the fields that are *added*."""
    return Schema(type=SchemaType.STRUCT, name="Order", fields=(Field("id", STRING), *added))


@pytest.mark.parametrize(
    ("props", "known"),
    [
        ({"files.path": "/in/*.jsonl"}, None),
        ({"files.path": "/in/*.parquet"}, None),
        ({"files.path": "/in", "files.format": "bytes"}, RecordSchemas(value=BYTES)),
        (
            {"files.path": "/in/*.avro", "files.schema": AVRO},
            RecordSchemas(value=order()),
        ),
        (
            {"files.path": "/in/*.avro", "files.schema": AVRO, "files.fields": "size:bytes"},
            RecordSchemas(value=order(Field("bytes", INT64.as_optional()))),
        ),
    ],
)
def test_the_one_schema_of_all_files_is_known(
    props: dict[str, str], known: RecordSchemas | None
) -> None:
    """With the fields that are added; without it each file has its own."""
    given = {"name": "c", "topic": "t", **props}

    assert known == FilesConnector().record_schemas(given)
