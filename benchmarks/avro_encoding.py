"""``python -m benchmarks.avro_encoding``: Avro's bytes from columns, compared with fastavro record by record.

Needs no broker: what is measured is the converter alone, and the converter after the reader of Avro
files, in CPU seconds of this process. The records have the fields of the other benchmarks, and the same
again in a struct with an array. All ways must give the same bytes.
"""

from __future__ import annotations

import argparse
import io
import statistics
import time
from collections.abc import Callable, Sequence
from typing import Any

import fastavro
import pyarrow as pa
from fastavro import parse_schema, schemaless_writer

from headrace.connect.schema import Schema
from headrace.converters import make_converter
from headrace.formats.avro.format import AvroFormat
from headrace.formats.format import ReadLimits
from headrace.testing.format_suite import reader_of
from headrace.testing.schema_registry import SchemaRegistry

FLAT: dict[str, Any] = {
    "type": "record",
    "name": "Reading",
    "namespace": "plant",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "time", "type": {"type": "long", "logicalType": "timestamp-millis"}},
        {"name": "device", "type": "string"},
        {"name": "reading", "type": "double"},
        {"name": "unit", "type": ["null", "string"], "default": None},
        {"name": "state", "type": "string"},
        {"name": "note", "type": "string"},
    ],
}
NESTED: dict[str, Any] = {
    "type": "record",
    "name": "Day",
    "namespace": "plant",
    "fields": [
        {"name": "at", "type": FLAT},
        {"name": "values", "type": {"type": "array", "items": "double"}},
        {"name": "tags", "type": {"type": "map", "values": "string"}},
    ],
}
_ROUNDS = 7
_PRELUDE = 5
# As the connector has them by itself.
LIMITS = ReadLimits(rows=10_000, chunk_bytes=1 << 20, record_bytes=1 << 20)


def main() -> None:
    """Measure both kinds of records and print a row for each way."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--records", type=int, default=50_000)
    count = parser.parse_args().records
    print("| records | way | records per CPU second |\n|---|---|---|")
    with SchemaRegistry() as registry:
        for name, schema, record in (("flat", FLAT, flat), ("nested", NESTED, nested)):
            content = written(schema, [record(number) for number in range(count)])
            for way, speed in measured(registry, schema, content, count):
                print(f"| {name} | {way} | {speed:,.0f} |")


def flat(number: int) -> dict[str, Any]:
    """The record with that number."""
    return {
        "id": number,
        "time": 1_772_323_200_000 + number * 1000,
        "device": f"sensor-{number % 10_000:04d}",
        "reading": number / 100,
        "unit": None if number % 5 == 0 else "celsius",
        "state": "ok",
        "note": f"measured in the hall, {number % 1_000_000:06d}, and kept for as long as it may",
    }


def nested(number: int) -> dict[str, Any]:
    """The same in a struct, with an array and a map."""
    values = [number / 7 + hour for hour in range(number % 8)]
    return {"at": flat(number), "values": values, "tags": {"hall": f"{number % 9}"}}


def written(schema: dict[str, Any], records: Sequence[dict[str, Any]]) -> bytes:
    """A file of *records*."""
    out = io.BytesIO()
    fastavro.writer(out, schema, records)
    return out.getvalue()


def measured(
    registry: SchemaRegistry, schema: dict[str, Any], content: bytes, count: int
) -> list[tuple[str, float]]:
    """Each way with its speed; checks that the bytes are the same."""
    converter = make_converter("avro", {"schema.registry.url": registry.url}, is_key=False)
    batches = batches_of(content)
    # What fastavro is given is cheap for it: numbers for times, dictionaries that are there already.
    plain = parse_schema(without_logical(schema))
    records: list[Any] = list(fastavro.reader(io.BytesIO(content), reader_schema=None))
    records = [with_numbers(each) for each in records]

    def encode() -> list[pa.BinaryArray]:
        return [converter.encode(schema["name"], each, values) for each, values in batches]

    def read_and_encode() -> list[pa.BinaryArray]:
        return [
            converter.encode(schema["name"], each, values) for each, values in batches_of(content)
        ]

    def one_by_one() -> list[bytes]:
        return [datum(plain, each) for each in records]

    ours = [each[_PRELUDE:] for column in encode() for each in column.to_pylist()]
    if ours != one_by_one():
        raise SystemExit("The bytes differ.")
    ways: dict[str, Callable[[], object]] = {
        "the converter, on columns": encode,
        "a file read, and the converter": read_and_encode,
        "fastavro's schemaless_writer, on dictionaries that are there": one_by_one,
    }
    return [(name, count / seconds_of(way)) for name, way in ways.items()]


def batches_of(content: bytes) -> list[tuple[Schema | None, pa.Array]]:
    """The batches of a file, as the connector reads them."""
    reader = reader_of(AvroFormat(), content, limits=LIMITS)
    found: list[tuple[Schema | None, pa.Array]] = []
    while (chunk := reader.next_chunk()) is not None:
        found.append((reader.value_schema, chunk.values))
    reader.close()
    return found


def datum(schema: Any, record: Any) -> bytes:  # noqa: ANN401
    """One record's bytes."""
    out = io.BytesIO()
    schemaless_writer(out, schema, record)
    return out.getvalue()


def without_logical(schema: Any) -> Any:  # noqa: ANN401
    """*schema* without logical types."""
    if isinstance(schema, list):
        return [without_logical(each) for each in schema]
    if isinstance(schema, dict):
        return {key: without_logical(each) for key, each in schema.items() if key != "logicalType"}
    return schema


def with_numbers(record: dict[str, Any]) -> dict[str, Any]:
    """*record* with its time as a number."""
    if "at" in record:
        return {**record, "at": with_numbers(record["at"])}
    return {**record, "time": round(record["time"].timestamp() * 1000)}


def seconds_of(way: Callable[[], object]) -> float:
    """CPU seconds of one round, the median of several."""
    took: list[float] = []
    for _ in range(_ROUNDS):
        began = time.process_time()
        way()
        took.append(time.process_time() - began)
    return statistics.median(took)


if __name__ == "__main__":
    main()
