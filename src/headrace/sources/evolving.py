"""A record on its way from the object to Kafka, and its last evolution."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from headrace.connect.batch import SourceBatch
from headrace.connect.errors import TaskFailedError
from headrace.connect.record import Headers, SourceRecord
from headrace.connect.schema import JSON_DOCUMENT, Schema
from headrace.sources.item import Context
from headrace.sources.item_reader import ItemToRead
from headrace.sources.offset_entry import RECORD_COUNT, OffsetEntry


@dataclass(slots=True, kw_only=True)
class EvolvingRecord:
    """What the last evolution may change: everything but where the record came from.

    A JSON document is there as Python's lists, dictionaries and numbers. *entry* is a copy of the
    object's as of this record: what is set in it is stored with this record's offset.
    """

    context: Context[Any]
    entry: OffsetEntry
    topic: str
    value: Any
    value_schema: Schema | None = None
    partition: int | None = None
    key: Any = None
    key_schema: Schema | None = None
    headers: Headers = ()
    timestamp: int | None = None


Evolution = Callable[[EvolvingRecord], EvolvingRecord]


def evolved(batch: SourceBatch, work: ItemToRead, evolve: Evolution) -> list[SourceRecord]:
    """The records of *batch*, which were read of *work*, after *evolve* saw each of them once."""
    documents = batch.values.type == JSON_DOCUMENT
    return [
        _evolved(batch, row, json.loads(value) if documents else value, work=work, evolve=evolve)
        for row, value in enumerate(batch.values.to_pylist())
    ]


def _evolved(
    batch: SourceBatch, row: int, value: object, *, work: ItemToRead, evolve: Evolution
) -> SourceRecord:
    offset = batch.offset_at(row) or {}
    count = {RECORD_COUNT: offset[RECORD_COUNT]}
    record = evolve(
        EvolvingRecord(
            context=work.context,
            entry=work.entry.from_properties({**work.entry.properties(), **count}),
            topic=batch.topic,
            partition=batch.partition,
            value=value,
            value_schema=batch.value_schema,
        )
    )
    if record.entry.key != work.entry.key:
        raise TaskFailedError(
            f"{work.context.native_key}: last_evolution gave a record the entry of another object, "
            f"{record.entry.key}. Set properties of the entry it was given."
        )
    return SourceRecord(
        topic=record.topic,
        partition=record.partition,
        value=record.value,
        value_schema=record.value_schema,
        key=record.key,
        key_schema=record.key_schema,
        headers=record.headers,
        timestamp=record.timestamp,
        source_partition=work.partition,
        source_offset={**offset, **record.entry.own_offset()},
    )
