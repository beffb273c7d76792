"""TimestampRouter, as Kafka Connect does it."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.connect.batch import SourceBatch
from headrace.connect.errors import RecordError
from headrace.connect.schema import OPTIONAL_STRING
from headrace.transforms.catalogue import make_transform
from headrace.transforms.timestamp_router import TimestampRouter, TimestampRouterConfig
from transforms.both_ways import check_both_ways, rows_of
from transforms.generated import batch_of, batches

NAME = "org.apache.kafka.connect.transforms.TimestampRouter"
DAY = 86_400_000


def router(**config: str) -> TimestampRouter:
    """A router that is configured."""
    made = make_transform(NAME, {key.replace("_", "."): value for key, value in config.items()})
    assert isinstance(made, TimestampRouter)
    return made


def stamped(*millis: int | None) -> SourceBatch:
    """A batch of records of a topic with these timestamps."""
    stamps = pa.array(millis, pa.int64())
    return replace(batch_of(["x"] * len(millis), OPTIONAL_STRING), timestamps=stamps)


@pytest.mark.parametrize(
    ("config", "topic"),
    [
        ({}, "top-19700101"),
        (
            {
                "topic_format": "${timestamp}-${topic}-${topic}$1",
                "timestamp_format": "yyyy'$1'MM",
            },
            "1970$101-top-top$1",
        ),
        ({"timestamp_format": ""}, "top-"),
        ({"topic_format": "fixed"}, "fixed"),
    ],
)
def test_a_topic_is_named_by_the_time(config: dict[str, str], topic: str) -> None:
    """Both placeholders may stand anywhere, and dollars in what they stand for are dollars."""
    (record,) = rows_of([replace(stamped(9), timestamps=9)])

    assert topic == router(**config).apply(record).topic


def test_a_batch_is_cut_where_its_topic_changes() -> None:
    """Rows keep their order, and neighbours of one topic stay together."""
    millis = (0, 1, DAY - 1, DAY, DAY + 5, 2, -1)
    cut = router().apply_batch(stamped(*millis))

    assert [
        ("top-19700101", 3),
        ("top-19700102", 2),
        ("top-19700101", 1),
        ("top-19691231", 1),
    ] == [(each.topic, len(each)) for each in cut]
    assert list(millis) == [record.timestamp for record in rows_of(cut)]


def test_a_coarse_pattern_keeps_days_together() -> None:
    """A month is one topic."""
    cut = router(timestamp_format="yyyyMM").apply_batch(stamped(0, DAY, 30 * DAY, 31 * DAY))

    assert [("top-197001", 3), ("top-197002", 1)] == [(each.topic, len(each)) for each in cut]


@pytest.mark.parametrize("batch", [stamped(1, None), replace(stamped(1), timestamps=None)])
def test_a_record_without_timestamp_is_refused(batch: SourceBatch) -> None:
    """There is no topic for it."""
    with pytest.raises(RecordError, match="Timestamp missing on record"):
        router().apply_batch(batch)
    with pytest.raises(RecordError, match="Timestamp missing on record"):
        router().apply(rows_of([batch])[-1])


def test_a_pattern_that_is_none_is_reported() -> None:
    """In Java's words."""
    ((key, reported),) = TimestampRouterConfig.problems({"timestamp.format": "yyyyb"})

    assert "timestamp.format" == key
    assert reported.endswith("Illegal pattern character 'b'")


@given(
    batch=batches(),
    pattern=st.sampled_from(["yyyyMMdd", "yyyy", "HH", "yyyyMMddHHmmss.SSS", "", "'x'", "mm"]),
)
def test_batches_become_what_their_rows_become(batch: SourceBatch, pattern: str) -> None:
    """At once or one by one, whatever the timestamps are."""
    stamped = batch.timestamps is not None

    assert stamped is check_both_ways(router(timestamp_format=pattern), batch)
