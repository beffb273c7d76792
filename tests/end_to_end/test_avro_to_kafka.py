"""Avro and Parquet files to Avro in Kafka, read by another client, another decoder, and the registry's schema."""

from __future__ import annotations

import datetime as dt
import io
import json
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from end_to_end.live import Life
from headrace.testing.judge import committed_records
from headrace.testing.schema_registry import SchemaRegistry
from waiting import until

pytestmark = pytest.mark.broker

READING: dict[str, Any] = {
    "type": "record",
    "name": "Reading",
    "namespace": "plant",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "time", "type": {"type": "long", "logicalType": "timestamp-millis"}},
        {"name": "unit", "type": ["null", "string"], "default": None},
        {"name": "values", "type": {"type": "array", "items": "double"}},
        {
            "name": "place",
            "type": {
                "type": "record",
                "name": "Place",
                "fields": [{"name": "hall", "type": "int"}],
            },
        },
    ],
}


@pytest.fixture
def registry() -> Iterator[SchemaRegistry]:
    """A registry that asks who one is."""
    with SchemaRegistry(user_info="headrace:secret") as own:
        yield own


@pytest.fixture
def life(bootstrap: str, tmp_path: Path, registry: SchemaRegistry) -> Life:
    """A worker that writes Avro."""
    return Life(
        bootstrap,
        tmp_path,
        {
            "value.converter": "io.confluent.connect.avro.AvroConverter",
            "value.converter.schema.registry.url": registry.url,
            "value.converter.basic.auth.credentials.source": "USER_INFO",
            "value.converter.basic.auth.user.info": "headrace:secret",
            "value.converter.max.retries": "0",
        },
    )


def reading(number: int) -> dict[str, Any]:
    """A record, different from all others."""
    moment = dt.datetime(2026, 3, 1, tzinfo=dt.UTC) + dt.timedelta(milliseconds=number)
    return {
        "id": number,
        "time": moment,
        "unit": None if number % 3 else "°C",
        "values": [number / 2] * (number % 4),
        "place": {"hall": -number},
    }


def write_avro(path: Path, schema: dict[str, Any], records: list[dict[str, Any]]) -> None:
    """Write a file of *records*."""
    path.parent.mkdir(exist_ok=True)
    with path.open("wb") as file:
        fastavro.writer(file, schema, records)


def decoded(life: Life, topic: str, registry: SchemaRegistry) -> list[dict[str, Any]]:
    """The records in *topic*, by the schemas that the registry has under their ids."""
    schemas: dict[bytes, Any] = {}
    found: list[dict[str, Any]] = []
    for record in committed_records(life.bootstrap, topic):
        magic, key, content = record.value[:1], record.value[1:5], record.value[5:]
        assert b"\x00" == magic
        if key not in schemas:
            schemas[key] = schema_of(registry, int.from_bytes(key, "big"))
        found.append(fastavro.schemaless_reader(io.BytesIO(content), schemas[key], None))
    return found


def schema_of(registry: SchemaRegistry, schema_id: int) -> Any:  # noqa: ANN401
    """The schema with that id, asked for as any consumer does."""
    asked = urllib.request.Request(f"{registry.url}/schemas/ids/{schema_id}")
    asked.add_header("Authorization", registry.expected)
    with urllib.request.urlopen(asked) as answer:
        return fastavro.parse_schema(json.loads(json.load(answer)["schema"]))


def test_avro_files_become_avro_in_kafka(life: Life, tmp_path: Path, registry: SchemaRegistry):
    """Each record once, equal to what is in the files, under one schema for all of them."""
    records = [reading(number) for number in range(3_000)]
    for part in range(3):
        path = tmp_path / "in" / f"{part}.avro"
        write_avro(path, READING, records[part * 1_000 : (part + 1) * 1_000])
    topic = life.add("files", files_path=str(tmp_path / "in"), files_min_age_ms="0")

    assert [{}, {}] == [life.run_once(), life.run_once()]

    found = sorted(decoded(life, topic, registry), key=lambda each: each["id"])
    assert records == found
    assert {f"{topic}-value": [1]} == {
        each: registry.store.versions(each) for each in registry.store.subjects()
    }
    told = registry.schema(1)
    assert ("Reading", "plant") == (told["name"], told["namespace"])


def test_parquet_files_become_avro_in_kafka(life: Life, tmp_path: Path, registry: SchemaRegistry):
    """Structs without names have Connect's; maps of other keys than strings are arrays of entries."""
    rows = [{"n": n, "by": [(n, f"v{n}")], "in": {"x": n / 2}} for n in range(100)]
    kinds = pa.schema(
        [
            pa.field("n", pa.int32(), nullable=False),
            pa.field("by", pa.map_(pa.int64(), pa.utf8())),
            pa.field("in", pa.struct([("x", pa.float64())])),
        ]
    )
    (tmp_path / "in").mkdir()
    pq.write_table(pa.Table.from_pylist(rows, kinds), tmp_path / "in" / "a.parquet")
    topic = life.add("files", files_path=str(tmp_path / "in"), files_min_age_ms="0")

    assert {} == life.run_once()

    expected = [{**row, "by": [{"key": row["n"], "value": f"v{row['n']}"}]} for row in rows]
    assert expected == decoded(life, topic, registry)
    assert "ConnectDefault" == registry.schema(1)["name"]


def test_a_file_whose_schema_is_not_compatible_fails_the_connector(
    life: Life, tmp_path: Path, registry: SchemaRegistry
):
    """The message names the file; what precedes it is in Kafka, and a mended registry lets it go on."""
    other = {**READING, "fields": [{"name": "new", "type": "int"}]}
    write_avro(tmp_path / "in" / "a.avro", READING, [reading(1)])
    write_avro(tmp_path / "in" / "b.avro", other, [{"new": 1}])
    topic = life.add("files", files_path=str(tmp_path / "in"), files_min_age_ms="0", tasks_max="1")

    failures = life.run_once()

    assert str(tmp_path / "in" / "b.avro") in str(failures[topic])
    assert "not compatible" in str(failures[topic])
    assert [reading(1)] == decoded(life, topic, registry)
    registry.store.levels[f"{topic}-value"] = "NONE"
    assert {} == life.run_once()
    assert [reading(1), {"new": 1}] == decoded(life, topic, registry)


def test_a_registry_that_is_away_is_waited_for(
    life: Life, tmp_path: Path, registry: SchemaRegistry
):
    """Whoever looks at the log sees why nothing comes; then each record is there once."""
    registry.moments.extend([503] * 4)
    write_avro(tmp_path / "in" / "a.avro", READING, [reading(n) for n in range(50)])
    topic = life.add("files", files_path=str(tmp_path / "in"), files_min_age_ms="0", tasks_max="1")

    with life.running():
        until(lambda: len(list(committed_records(life.bootstrap, topic))) == 50)

    assert [reading(n) for n in range(50)] == decoded(life, topic, registry)
    assert any("schema registry" in str(each) for each in life.witness.events)


def test_a_registry_that_lets_no_one_in_fails_the_connector(
    life: Life, tmp_path: Path, registry: SchemaRegistry
):
    """Waiting would not help; the sentence names the setting, and not the password."""
    life.worker["value.converter.basic.auth.user.info"] = "headrace:wrong"
    write_avro(tmp_path / "in" / "a.avro", READING, [reading(1)])
    topic = life.add("files", files_path=str(tmp_path / "in"), files_min_age_ms="0")

    failures = life.run_once()

    assert "basic.auth.user.info" in str(failures[topic])
    assert "wrong" not in str(failures[topic])
    assert [] == decoded(life, topic, registry)
