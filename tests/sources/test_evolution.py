"""Where records go and what they become at last: the configuration, the context, the last evolution."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

from headrace.connect.batch import BatchOffsets, SourceBatch
from headrace.connect.columns import column_of
from headrace.connect.errors import TaskFailedError
from headrace.connect.json_document import JSON_NULL
from headrace.sources import Context, EvolvingRecord, OffsetEntry
from headrace.testing.task_runs import LocalContext, Stored, StoredOffsets, batches_of
from sources.shelf import (
    PROPS,
    LouderConnector,
    Shelf,
    ShelfConnector,
    ShelfTask,
    partition_of,
    played,
    run,
)

NO_TOPIC = {key: value for key, value in PROPS.items() if key != "topic"}


class Sorting(ShelfTask):
    """Sends each record elsewhere, one by one."""

    def last_evolution(self, record: EvolvingRecord) -> EvolvingRecord:
        """Notes what it was given."""
        record.value = f"{record.topic}-{record.partition}-{record.value}"
        record.topic, record.partition = "sorted", 9
        return record


class SortingBatches(ShelfTask):
    """The same, many at once."""

    def last_evolution_of_batch(self, batch: SourceBatch, context: Context[Any]) -> SourceBatch:
        """Notes what it was given, and adds a property to the offset."""
        values = [f"{batch.topic}-{batch.partition}-{value}" for value in batch.values.to_pylist()]
        assert batch.offsets is not None
        return dataclasses.replace(
            batch,
            topic="sorted",
            partition=9,
            values=pa.array(values),
            keys=pa.array([context.native_key] * len(values)),
            offsets=dataclasses.replace(
                batch.offsets, constant={**batch.offsets.constant, "said": values[-1]}
            ),
        )


class SortingBatchesConnector(ShelfConnector):
    """The shelf, sorted."""

    task_class = SortingBatches


def first_of(task: ShelfTask, props: dict[str, str]) -> SourceBatch:
    """The first batch of *task*."""
    task.initialize(LocalContext(offsets=StoredOffsets({})))
    task.start(props)
    try:
        return batches_of(task.poll())[0]
    finally:
        task.stop()


@pytest.mark.parametrize(
    ("configured", "context", "expected"),
    [
        ("books", Context(native_key="a"), ("books", None)),
        (None, Context(native_key="a", topic="told"), ("told", None)),
        (None, Context(native_key="a", topic="told", partition=3), ("told", 3)),
        ("books", Context(native_key="a", topic="told", partition=3), ("books", 3)),
    ],
)
def test_where_records_go(
    shelf: Shelf, configured: str | None, context: Context[str], expected: tuple[str, int | None]
):
    """The configured topic, else the context's; the context's partition; the last evolution over all."""
    shelf.objects, shelf.contexts = {"a": b"1\n"}, {"a": context}
    props = {**NO_TOPIC, **({"topic": configured} if configured else {})}

    plain = first_of(ShelfTask(), props)
    sorted_ = [first_of(Sorting(), props), first_of(SortingBatches(), props)]

    assert expected == (plain.topic, plain.partition)
    assert [("sorted", 9)] * 2 == [(each.topic, each.partition) for each in sorted_]
    assert [f"{expected[0]}-{expected[1]}-1"] * 2 == [each.values[0].as_py() for each in sorted_]


@pytest.mark.parametrize("kind", [Sorting, SortingBatches])
def test_the_last_evolution_may_be_the_one_that_tells_the_topic(
    shelf: Shelf, kind: type[ShelfTask]
):
    """Nothing has to tell it before."""
    shelf.objects = {"a": b"1\n"}

    assert "sorted" == first_of(kind(), NO_TOPIC).topic


class Topicless(ShelfTask):
    """Does not tell one either."""

    def last_evolution(self, record: EvolvingRecord) -> EvolvingRecord:
        """Nothing."""
        return record


class TopiclessBatches(ShelfTask):
    """Does not tell one either."""

    def last_evolution_of_batch(self, batch: SourceBatch, context: Context[Any]) -> SourceBatch:
        """Nothing."""
        return dataclasses.replace(batch)


@pytest.mark.parametrize("kind", [Topicless, TopiclessBatches])
def test_a_topic_that_no_one_tells_fails(shelf: Shelf, kind: type[ShelfTask]):
    """With the object's name."""
    shelf.objects = {"a": b"1\n"}

    with pytest.raises(TaskFailedError, match="a: Nothing tells the topic of its records"):
        first_of(kind(), NO_TOPIC)


@pytest.mark.parametrize("stop_after", range(1, 8))
def test_what_the_batch_form_adds_to_the_offset_is_stored(shelf: Shelf, stop_after: int):
    """With its record, with the end as well; each record once, wherever it is killed."""
    shelf.objects = {"a": b"1\n2\n3\n", "b": b"4\n5\n6\n7\n"}
    stored: Stored = {}

    first = run(stored, stop_after, kind=SortingBatchesConnector)
    rest = run(stored, kind=SortingBatchesConnector)

    assert [f"books-None-{number}" for number in range(1, 8)] == sorted(map(str, first + rest))
    assert "books-None-3" == stored[partition_of("a")]["said"]
    assert stored[partition_of("a")]["done"]
    assert [] == run(stored, kind=SortingBatchesConnector)


@pytest.mark.parametrize("first", [1, 2, 3])
@pytest.mark.parametrize("second", [1, 2, 3])
def test_an_evolved_record_is_not_repeated_after_two_restarts(
    shelf: Shelf, first: int, second: int
):
    """The place in its offset is its own, and not that of the entry from which reading went on."""
    shelf.objects = {"a": b"1\n2\n3\n4\n5\n6\n7\n"}
    stored: Stored = {}

    found = run(stored, first, kind=LouderConnector)
    found += run(stored, second, kind=LouderConnector)
    found += run(stored, kind=LouderConnector)

    assert [f"{number}!" for number in range(1, 8)] == found


def shorter(batch: SourceBatch) -> SourceBatch:
    """A row is missing."""
    return batch.slice(1, len(batch) - 1)


def elsewhere(batch: SourceBatch) -> SourceBatch:
    """It is another object's."""
    return dataclasses.replace(batch, source_partition=partition_of("z"))


def without_place(batch: SourceBatch) -> SourceBatch:
    """Its offsets say nothing of the place."""
    return dataclasses.replace(batch, offsets=BatchOffsets(constant={"own": 1}))


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (shorter, "was given 2 rows .* and gave 1"),
        (elsewhere, "It must give the same rows"),
        (without_place, "those of the framework must stay"),
    ],
)
def test_a_batch_form_that_loses_the_rows_or_their_places_fails(
    shelf: Shelf, wrong: Callable[[SourceBatch], SourceBatch], message: str
):
    """At once, and not by records that come twice after a restart."""
    shelf.objects = {"a": b"1\n2\n"}

    class Wrong(ShelfTask):
        """Gives something else."""

        def last_evolution_of_batch(self, batch: SourceBatch, context: Context[Any]) -> SourceBatch:
            """As the test says."""
            return wrong(batch)

    with pytest.raises(TaskFailedError, match=f"a: last_evolution_of_batch .*{message}"):
        first_of(Wrong(), PROPS)


def test_only_one_form_may_be_overridden():
    """Nobody could say which one is asked."""

    class Both(Sorting, SortingBatches):
        """Has two."""

    with pytest.raises(TypeError, match="Both overrides both"):
        first_of(Both(), PROPS)


class Replacing(ShelfTask):
    """Makes an entry of its own, with a place in it."""

    def last_evolution(self, record: EvolvingRecord) -> EvolvingRecord:
        """As if nothing had been read yet."""
        record.entry = OffsetEntry(record.entry.key, {"anchor": 0, "done": True, "own": 1})
        return record


class ReplacingConnector(ShelfConnector):
    """The shelf, with entries of an author."""

    task_class = Replacing


def test_an_entry_of_the_author_does_not_move_the_place(shelf: Shelf):
    """Nothing comes twice, and nothing is done too early."""
    shelf.objects = {"a": b"1\n2\n3\n"}
    stored: Stored = {}

    assert ["1"] == run(stored, 1, kind=ReplacingConnector)
    assert 1 == stored[partition_of("a")]["own"]
    assert ["2", "3"] == run(stored, kind=ReplacingConnector)


class Emptying(ShelfTask):
    """Takes the value of one record away."""

    def last_evolution(self, record: EvolvingRecord) -> EvolvingRecord:
        """Of the one that is 2."""
        record.value = None if record.value == 2 else record.value
        return record


@pytest.mark.parametrize(("setting", "expected"), [("value", b"null"), ("tombstone", None)])
def test_a_document_null_is_no_tombstone_unless_it_is_said(
    shelf: Shelf, setting: str, expected: bytes | None
):
    """It passes a last evolution as it was; a value that is taken away is a tombstone."""
    shelf.objects = {"a": b'null\n2\n{"a":null}\nnull\n'}
    props = {**PROPS, "extractor.class": "jsonl", "json.null": setting}

    loop = played(Emptying(), props)

    sent = [value for topic, _, value in loop.sender.committed if topic == "books"]
    assert [expected, None, b'{"a":null}', expected] == sent


def test_no_value_is_a_tombstone_in_any_company():
    """Also beside lists and maps; the JSON document null has a name of its own."""
    assert ['{"a":1}', None] == column_of(None, [{"a": 1}, None]).to_pylist()
    assert ["a", None] == column_of(None, ["a", None]).to_pylist()
    assert ["null", None, "[1]"] == column_of(None, [JSON_NULL, None, [1]]).to_pylist()
    assert ["null"] == column_of(None, [JSON_NULL]).to_pylist()
