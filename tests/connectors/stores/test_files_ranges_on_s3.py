"""Large objects of S3 in ranges: each slot asks for what it reads."""

from __future__ import annotations

import io

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from connectors.stores.files_bucket import FilesBucket, Stored
from sources.avro_files import avro_file

ROWS = 7
SCHEMA = {"type": "record", "name": "Row", "fields": [{"name": "n", "type": "int"}]}


def parquet() -> bytes:
    """Rows in row groups of three."""
    out = io.BytesIO()
    table = pa.table({"n": range(ROWS), "text": [f"row {n}" for n in range(ROWS)]})
    pq.write_table(table, out, row_group_size=3)
    return out.getvalue()


CONTENTS = {
    "a.avro": avro_file(SCHEMA, [{"n": n} for n in range(ROWS)], per_block=2),
    "a.parquet": parquet(),
}


@pytest.mark.parametrize("key", CONTENTS)
@pytest.mark.parametrize("parts", [2, 5, 20])
def test_each_record_once(bucket: FilesBucket, key: str, parts: int):
    """Wherever an object is cut, and stopped; its entry counts the records of all ranges."""
    content = CONTENTS[key]
    bucket.put(key, content)
    size, form = str(len(content) // parts + 1), key.removeprefix("a.")
    stored: Stored = {}

    found = bucket.run(stored, stop_after=3, files_split_bytes=size, files_format=form)
    assert any("from" in each for each in stored)
    found += bucket.run(stored, files_split_bytes=size, files_format=form)

    assert list(range(ROWS)) == sorted(each.value["n"] for each in found)
    assert [bucket.partition(key)] == list(stored)
    done = stored[bucket.partition(key)]
    assert (True, ROWS) == (done["done"], done["recordCount"])
