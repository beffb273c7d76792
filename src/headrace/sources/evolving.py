"""A record on its way from the object to Kafka, and its last evolution."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from headrace.connect.batch import SourceBatch
from headrace.connect.errors import RecordError, TaskFailedError
from headrace.connect.json_document import JSON_NULL
from headrace.connect.partition import RECORD_COUNT
from headrace.connect.record import BadRecord, Header, Headers, SourceRecord
from headrace.connect.schema import JSON_DOCUMENT, Schema
from headrace.sources.author_checks import check_partition, wrong
from headrace.sources.destination import no_topic
from headrace.sources.item import Context
from headrace.sources.item_reader import ItemToRead
from headrace.sources.json_numbers import Numbers, parsed
from headrace.sources.offset_entry import KEPT, OffsetEntry


@dataclass(slots=True, kw_only=True)
class EvolvingRecord:
    """What the last evolution may change: everything but where the record came from.

    *topic* and *partition* are what was told before, an empty topic that no one has told any. A JSON
    document is there as Python's lists, dictionaries and numbers, as ``json.numbers`` says; the document
    ``null`` is ``None``, and stays that document when it is left so, while a *value* that becomes ``None``
    makes a record without value, a tombstone. *entry* is a copy of the object's as of this record: what is
    set in it is stored with this record's offset.
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
BatchEvolution = Callable[[SourceBatch, Context[Any]], SourceBatch]


def evolved(
    batch: SourceBatch, work: ItemToRead, evolve: Evolution, numbers: Numbers
) -> tuple[list[SourceRecord], RecordError | None]:
    """The records of *batch*, which were read of *work*, after *evolve* saw each of them once.

    They end before the first one that *numbers* refuses, and the error is that one's.
    """
    documents = batch.values.type == JSON_DOCUMENT
    found = list[SourceRecord]()
    for row, value in enumerate(batch.values.to_pylist()):
        seen = value
        if documents and value is not None:
            try:
                seen = parsed(value, numbers)
            except RecordError as error:
                return found, _refused(batch, row, work, error)
        record = _evolved(batch, row, seen, work=work, evolve=evolve)
        if record.value is seen is None and value is not None:
            record = dataclasses.replace(record, value=JSON_NULL)
        found.append(record)
    return found, None


def _refused(batch: SourceBatch, row: int, work: ItemToRead, error: RecordError) -> RecordError:
    """*error* with its place, and with the record that it is about."""
    offset = batch.offset_at(row) or {}
    key, count = str(work.context.native_key), offset[RECORD_COUNT]
    known = {"object": key, "version": work.version, "record": count}
    bad = BadRecord(
        source_partition=batch.source_partition,
        source_offset=offset,
        topic=batch.topic or None,
        raw=str(batch.values[row].as_py()).encode(),
        reference={name: value for name, value in known.items() if value is not None},
    )
    return error.located(key, f"record {count}").about(bad)


def evolved_batch(batch: SourceBatch, work: ItemToRead, evolve: BatchEvolution) -> SourceBatch:
    """*batch*, which was read of *work*, after *evolve* saw it.

    Raises :class:`~headrace.connect.errors.TaskFailedError` when it is not the same rows any more.
    """
    found, key = evolve(batch, work.context), work.context.native_key
    if not isinstance(found, SourceBatch):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise _no_result(evolve, found, "a SourceBatch")
    if len(found) != len(batch) or found.source_partition != batch.source_partition:
        raise TaskFailedError(
            f"{key}: last_evolution_of_batch was given {len(batch)} rows of {batch.source_partition} and gave "
            f"{len(found)} of {found.source_partition}. It must give the same rows, changed or not."
        )
    for row in {0, len(batch) - 1}:
        before, after = batch.offset_at(row) or {}, found.offset_at(row) or {}
        if any(before.get(name) != after.get(name) for name in KEPT):
            raise TaskFailedError(
                f"{key}: last_evolution_of_batch changed the offset {before} to {after}. It may add "
                "properties; those of the framework must stay."
            )
    if not found.topic:
        raise no_topic(key)
    return found


def _check(record: EvolvingRecord, work: ItemToRead, evolve: Evolution) -> None:
    """Raise ``TaskFailedError`` for what *evolve* must not give."""
    if not isinstance(record, EvolvingRecord):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise _no_result(evolve, record, "the one record that it was given, changed or not")
    where = f"{work.context.native_key}: {_name(evolve)}"
    check_partition(record.partition, where)
    headers: Any = record.headers
    if not isinstance(headers, tuple) or not all(isinstance(each, Header) for each in headers):
        raise TaskFailedError(
            f"{where} gave the headers {headers!r}. They must be a tuple of Header(key, value)."
        )


def _no_result(evolve: Callable[..., object], found: object, needed: str) -> TaskFailedError:
    author = getattr(evolve, "__self__", evolve)
    return wrong(author, getattr(evolve, "__name__", "last_evolution"), found, needed)


def _name(evolve: Callable[..., object]) -> str:
    author = type(getattr(evolve, "__self__", evolve)).__name__
    return f"{author}.{getattr(evolve, '__name__', 'last_evolution')}"


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
            key=None if batch.keys is None else batch.keys[row].as_py(),
            value=value,
            value_schema=batch.value_schema,
        )
    )
    _check(record, work, evolve)
    if record.entry.key != work.entry.key:
        raise TaskFailedError(
            f"{work.context.native_key}: last_evolution gave a record the entry of another object, "
            f"{record.entry.key}. Set properties of the entry it was given."
        )
    if not record.topic:
        raise no_topic(work.context.native_key)
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
