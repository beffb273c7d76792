"""Streams and bounded reads through Spark, on a real broker."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import cast

import pytest
from confluent_kafka import ConsumerGroupTopicPartitions, Producer
from pyspark.sql import SparkSession

from end_to_end.player import Player
from headrace.spark.engine import SparkEngine
from headrace.spark.kafka.data_source import KafkaDataSource
from headrace.testing.judge import committed_records
from spark.kafka.tables import OFTEN, Table, Topics, bounded
from waiting import until

pytestmark = [pytest.mark.broker, pytest.mark.spark, pytest.mark.timeout(120)]


@pytest.fixture
def topics(bootstrap: str) -> Topics:
    """On the broker that all tests share."""
    return Topics(bootstrap)


@pytest.fixture
def spark(spark_engine: SparkEngine) -> Iterator[SparkSession]:
    """The session that all tests share, knowing the source."""
    session = spark_engine.session()
    yield session
    for query in session.streams.active:
        query.stop()


@pytest.fixture
def base(bootstrap: str) -> dict[str, str]:
    """Options of every query."""
    return {"kafka.bootstrap.servers": bootstrap}


def test_a_new_topic_is_read_from_its_beginning_and_then_on(
    spark: SparkSession, topics: Topics, tmp_path: Path
) -> None:
    """With a restart in between."""
    topic = topics.create("one", 2)
    first = topics.write(topic, 500) + topics.write(topic, 300, partition=1)
    table = Table(
        spark, tmp_path, {"kafka.bootstrap.servers": topics.bootstrap, "subscribe": topic}
    )
    table.run()
    assert table.holds(first)
    second = topics.write(topic, 40)
    table.run()
    assert table.holds(first, second)


def test_the_columns_of_a_bounded_read(spark: SparkSession, topics: Topics) -> None:
    """As in Spark's own source, nulls and empty bytes apart."""
    topic = topics.create("columns")
    producer = Producer({"bootstrap.servers": topics.bootstrap})
    producer.produce(
        topic, value=b"v", key=None, timestamp=1234, headers=[("a", b"1"), ("a", None)]
    )
    producer.produce(topic, value=None, key=b"", timestamp=2234)
    assert producer.flush(30) == 0
    rows = (
        spark.read.format("headrace-kafka")
        .option("kafka.bootstrap.servers", topics.bootstrap)
        .option("subscribe", topic)
        .option("includeHeaders", "true")
        .load()
        .orderBy("offset")
        .selectExpr("*", "unix_millis(timestamp) as ms")
        .collect()
    )
    assert [row.asDict(recursive=True) | {"timestamp": None} for row in rows] == [
        {
            "key": None,
            "value": bytearray(b"v"),
            "topic": topic,
            "partition": 0,
            "offset": 0,
            "timestamp": None,
            "timestampType": 0,
            "headers": [
                {"key": "a", "value": bytearray(b"1")},
                {"key": "a", "value": None},
            ],
            "ms": 1234,
        },
        {
            "key": bytearray(b""),
            "value": None,
            "topic": topic,
            "partition": 0,
            "offset": 1,
            "timestamp": None,
            "timestampType": 0,
            "headers": None,
            "ms": 2234,
        },
    ]


def test_a_read_of_fewer_columns(spark: SparkSession, topics: Topics) -> None:
    """What is left out is not decoded, and the rest is the same."""
    topic = topics.create("few-columns")
    values = topics.write(topic, 30)
    read = spark.read.format("headrace-kafka").options(
        **{"kafka.bootstrap.servers": topics.bootstrap, "subscribe": topic}
    )
    offsets = read.option("columns", "offset").load()
    assert offsets.columns == ["offset"]
    assert sorted(row.offset for row in offsets.collect()) == list(range(30))
    frame = read.option("columns", "value,key").load()
    assert frame.columns == ["key", "value"]
    rows = [(row.key.decode(), row.value.decode()) for row in frame.collect()]
    assert sorted(rows) == sorted((value[-2:], value) for value in values)


# Partitions and topics that come while a query runs.


def test_e02_partitions_added_under_a_running_query_are_read_from_their_beginning(
    spark: SparkSession, topics: Topics, base: dict[str, str], tmp_path: Path
) -> None:
    """Though it began at the latest offset."""
    topic = topics.create("grows")
    topics.write(topic, 50)
    table = Table(spark, tmp_path, base | OFTEN | {"subscribe": topic})
    query = table.start(startingOffsets="latest")
    until(lambda: query.lastProgress is not None)
    first = topics.write(topic, 10)
    until(lambda: table.holds(first))

    topics.grow(topic, 3)
    second = topics.write(topic, 20, partition=1) + topics.write(topic, 20, partition=2)

    until(lambda: table.holds(first, second))


def test_e06_topics_created_under_a_running_query_that_match_are_read_from_their_beginning(
    spark: SparkSession, topics: Topics, base: dict[str, str], tmp_path: Path
) -> None:
    """The first discovery has found none. A topic whose name only begins like the pattern is not read."""
    options = (
        base | OFTEN | {"subscribePattern": f"{topics.prefix}-m.", "startingOffsets": "latest"}
    )
    table = Table(spark, tmp_path, options)
    query = table.start()
    until(lambda: query.lastProgress is not None)

    written = [topics.write(topics.create(name, 2), 30, partition=1) for name in ("m1", "m2")]
    topics.write(topics.create("m1-other"), 5)

    until(lambda: table.holds(*written))


def test_e31_a_listed_topic_that_does_not_exist_fails_with_its_name(
    spark: SparkSession, topics: Topics, base: dict[str, str], tmp_path: Path
) -> None:
    """It is not created by asking for it."""
    missing = topics.name("missing")
    table = Table(spark, tmp_path, base | {"subscribe": missing})

    assert missing in table.failure()
    assert missing not in topics.admin.list_topics(timeout=10).topics


# Losses.


@pytest.mark.parametrize(("case", "length"), [("e34", 10), ("e35", 50)])
def test_e34_e35_a_topic_that_was_created_again_fails_or_is_read_from_its_beginning(  # noqa: PLR0917
    spark: SparkSession,
    topics: Topics,
    base: dict[str, str],
    tmp_path: Path,
    case: str,
    length: int,
) -> None:
    """By default it fails, with a sentence that names the option; with failOnDataLoss=false the new one is read."""
    topic = topics.create(case)
    table = Table(spark, tmp_path, base | {"subscribe": topic})
    first = topics.write(topic, 30)
    table.run()
    topics.delete(topic)
    topics.create(case)
    second = topics.write(topic, length)

    said = table.failure()
    assert f"The topic {topic} was deleted and created again" in said
    assert "Set partition.discovery.on.recreated" in said
    assert table.holds(first)

    table.run(failOnDataLoss="false")
    assert table.holds(first, second)


@pytest.mark.parametrize(("case", "length"), [("e34", 10), ("e35", 50)])
def test_e34_e35_a_topic_that_is_created_again_under_a_running_query_is_read_by_option(  # noqa: PLR0917
    spark: SparkSession,
    topics: Topics,
    base: dict[str, str],
    tmp_path: Path,
    case: str,
    length: int,
) -> None:
    """Whichever comes first, a batch of it or a discovery."""
    topic = topics.create(f"running-{case}")
    policies = {"partition.discovery.on.removed": "continue", "failOnDataLoss": "false"}
    table = Table(
        spark, tmp_path, base | {"subscribe": topic, "partition.discovery.interval.ms": "1500"}
    )
    first = topics.write(topic, 30)
    query = table.start(**policies)
    until(lambda: table.holds(first))

    topics.delete(topic)
    topics.create(f"running-{case}")
    second = topics.write(topic, length)

    until(lambda: query.exception() is not None or table.holds(first, second))
    assert query.exception() is None


def test_records_that_retention_has_deleted_fail_with_their_range_and_by_option_do_not(
    spark: SparkSession, topics: Topics, base: dict[str, str], tmp_path: Path
) -> None:
    """What is left is read."""
    topic = topics.create("expires")
    table = Table(spark, tmp_path, base | {"subscribe": topic})
    first = topics.write(topic, 20)
    table.run()
    second = topics.write(topic, 30)
    topics.delete_records(topic, 40)

    said = table.failure()
    assert f"The offsets 20 to 39 of {topic}-0 cannot be read" in said
    assert "Set failOnDataLoss to false" in said

    table.run(failOnDataLoss="false")
    assert table.holds(first, second[20:])


# Transactions.


def test_of_interleaved_transactions_the_committed_ones_are_read_and_the_open_one_later(
    spark: SparkSession, topics: Topics, base: dict[str, str], tmp_path: Path
) -> None:
    """What comes after an open transaction waits for it, as with every reader of committed records (E65)."""
    topic = topics.create("transactions")
    table = Table(spark, tmp_path, base | {"subscribe": topic})
    kept, dropped, still_open = (topics.transactional(name) for name in ("a", "b", "c"))
    first = list[str]()
    for _ in range(3):
        some = topics.values(topic, 10)
        topics.produce(kept, topic, some)
        topics.produce(dropped, topic, topics.values(topic, 10))
        first += some
    kept.commit_transaction()
    dropped.abort_transaction()
    waiting = topics.values(topic, 10)
    topics.produce(still_open, topic, waiting)
    after = topics.write(topic, 5)

    table.run()
    assert table.holds(first)
    still_open.commit_transaction()
    table.run()
    assert table.holds(first, waiting, after)
    assert bounded(spark, base | {"subscribe": topic}) == table.values()


def test_e55_a_read_whose_last_offsets_are_markers_ends(
    spark: SparkSession, topics: Topics, base: dict[str, str], tmp_path: Path
) -> None:
    """And so does one of which every record was aborted."""
    topic = topics.create("markers", 2)
    kept, dropped = topics.transactional("d"), topics.transactional("e")
    values = topics.values(topic, 10)
    topics.produce(kept, topic, values)
    topics.produce(dropped, topic, topics.values(topic, 10, 1), 1)
    kept.commit_transaction()
    dropped.abort_transaction()
    options = base | {"subscribe": topic}

    assert bounded(spark, options) == sorted(values)
    table = Table(spark, tmp_path, options)
    table.run()
    assert table.holds(values)


def test_e65_latest_is_before_an_open_transaction(
    spark: SparkSession, topics: Topics, base: dict[str, str], tmp_path: Path
) -> None:
    """Its records are read when it is committed; who reads uncommitted ones has them already."""
    topic = topics.create("latest")
    topics.write(topic, 10)
    writer = topics.transactional("f")
    values = topics.values(topic, 10)
    topics.produce(writer, topic, values)
    options = base | {"subscribe": topic, "startingOffsets": "latest"}
    table = Table(spark, tmp_path, options)
    table.run()
    uncommitted = {"subscribe": topic, "kafka.isolation.level": "read_uncommitted"}
    assert set(values) < set(bounded(spark, base | uncommitted))
    writer.commit_transaction()

    table.run()
    assert table.holds(values)


@pytest.mark.timeout(400)
def test_a_compacted_topic_with_gaps_tombstones_and_transactions(
    spark: SparkSession, topics: Topics, base: dict[str, str], tmp_path: Path
) -> None:
    """As another client library reads it, also where a batch ends in a gap."""
    topic = topics.create(
        "compacted",
        cleanup_policy="compact",
        segment_ms="100",
        min_cleanable_dirty_ratio="0.01",
        delete_retention_ms="3600000",
    )
    producer = topics.transactional("g")
    for number in range(60):
        value = None if number % 7 == 0 else f"{number:03}"
        producer.produce(topic, key=f"k{number % 9}", value=value, partition=0)
    producer.commit_transaction()

    def is_compacted() -> bool:
        # Only what is not the newest segment is compacted, and a record begins a new one.
        topics.write(topic, 1)
        return len(list(committed_records(topics.bootstrap, topic))) < 55

    # The broker's cleaner has the topics of all other tests, too.
    until(is_compacted, seconds=300)
    expected = [
        (each.offset, each.key, each.value) for each in committed_records(topics.bootstrap, topic)
    ]

    table = Table(spark, tmp_path, base | {"subscribe": topic, "maxOffsetsPerTrigger": "7"})
    table.run()
    rows = (
        spark.read.format("headrace-kafka")
        .options(**base, subscribe=topic)
        .load()
        .orderBy("offset")
        .collect()
    )
    found = [
        (row.offset, bytes(row.key), None if row.value is None else bytes(row.value))
        for row in rows
    ]
    assert found[: len(expected)] == expected
    assert len([value for _, _, value in expected if value is None]) > 0
    assert table.values() == sorted("" if value is None else value.decode() for *_, value in found)


# How queries are limited, started, reported.


def test_a_limit_makes_more_batches_and_available_now_reads_all_of_them(
    spark: SparkSession, topics: Topics, base: dict[str, str], tmp_path: Path
) -> None:
    """None is larger than the limit."""
    topic = topics.create("limited", 2)
    values = topics.write(topic, 70) + topics.write(topic, 30, partition=1)
    table = Table(spark, tmp_path, base | {"subscribe": topic, "maxOffsetsPerTrigger": "40"})

    query = table.run()

    sizes = [each["numInputRows"] for each in query.recentProgress if each["numInputRows"]]
    assert sizes == [40, 40, 20]
    assert table.holds(values)


def test_large_ranges_are_split_over_tasks_and_each_record_is_read_once(
    spark: SparkSession, topics: Topics, base: dict[str, str]
) -> None:
    """By the largest size of a task, and by their least number."""
    topic = topics.create("split", 2)
    values = topics.write(topic, 400) + topics.write(topic, 7, partition=1)
    for option in ({"maxRecordsPerPartition": "80"}, {"minPartitions": "6"}):
        frame = (
            spark.read.format("headrace-kafka").options(**base, **option, subscribe=topic).load()
        )
        tasks = frame.selectExpr("spark_partition_id() as task", "cast(value as string) as value")
        rows = tasks.collect()
        assert len({row.task for row in rows}) in range(6, 8)
        assert sorted(row.value for row in rows) == sorted(values)


def test_the_progress_of_a_query_has_the_ends_and_the_lag(
    spark: SparkSession, topics: Topics, base: dict[str, str], tmp_path: Path
) -> None:
    """As ``latestOffset`` of its source, after each batch."""
    topic = topics.create("progress")
    topics.write(topic, 25)
    table = Table(spark, tmp_path, base | {"subscribe": topic, "maxOffsetsPerTrigger": "20"})

    query = table.run()

    progress = [each for each in query.recentProgress if each["numInputRows"]]
    reports = [json.loads(each["sources"][0]["latestOffset"]) for each in progress]
    assert [{topic: {"0": 25}}] * 2 == [each["topics"] for each in reports]
    assert [5, 0] == [each["offsetsBehindLatest"]["total"] for each in reports]
    assert {1} == {each["discovery"]["known"] for each in reports}


def test_what_has_been_read_is_committed_to_a_group_and_never_read_back(
    spark: SparkSession, topics: Topics, base: dict[str, str], tmp_path: Path
) -> None:
    """For tools that show lags."""
    topic = topics.create("group", 2)
    first = topics.write(topic, 20)
    group = topics.name("lag")
    table = Table(spark, tmp_path, base | {"subscribe": topic, "kafka.group.id": group})
    table.run()

    def committed() -> dict[int, int]:
        asked = topics.admin.list_consumer_group_offsets([ConsumerGroupTopicPartitions(group)])
        found = asked[group].result().topic_partitions
        return {each.partition: each.offset for each in found if each.topic == topic}

    assert committed() == {0: 20, 1: 0}
    second = topics.write(topic, 5)
    table.run(**{"commit.offsets.on.checkpoint": "false"})
    assert table.holds(first, second)
    assert committed() == {0: 20, 1: 0}


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"startingOfsets": "latest"}, "There is no such option; is startingOffsets meant?"),
        ({"subscribePattern": "t.*"}, "Set one of subscribe, subscribePattern and assign"),
        ({"kafka.bootstrap.servers": ""}, "Where is the cluster?"),
        ({"kafka.enable.auto.commit": "true"}, "Positions are in the query's checkpoint."),
    ],
)
def test_wrong_options_say_what_is_wrong_when_the_query_is_made(
    spark: SparkSession, base: dict[str, str], options: dict[str, str], sentence: str
) -> None:
    """The user sees the sentence, of a stream and of a read."""
    given = base | {"subscribe": "t"} | options
    for reader in (spark.read, spark.readStream):
        with pytest.raises(Exception) as caught:  # noqa: PT011 (Spark's own)
            reader.format("headrace-kafka").options(**given).load()
        assert sentence in str(caught.value)


def test_a_stream_refuses_an_end(spark: SparkSession, base: dict[str, str], tmp_path: Path) -> None:
    """With what to use instead."""
    table = Table(spark, tmp_path, base | {"subscribe": "t", "endingOffsets": "latest"})

    assert "trigger(availableNow=True)" in table.failure()


def test_brokers_that_do_not_answer_are_named_within_the_time_that_is_set(
    spark: SparkSession, tmp_path: Path
) -> None:
    """It never looks as if there were nothing to read."""
    options = {
        "kafka.bootstrap.servers": "localhost:1",
        "subscribe": "t",
        "kafka.default.api.timeout.ms": "1500",
    }

    assert "localhost:1" in Table(spark, tmp_path, options).failure()
    with pytest.raises(Exception, match="localhost:1"):
        bounded(spark, options)


# Other kinds of sessions.


def test_the_source_may_be_registered_by_hand(
    spark: SparkSession, topics: Topics, base: dict[str, str]
) -> None:
    """Which is not needed, and harms nothing."""
    topic = topics.create("registered")
    values = topics.write(topic, 5)

    spark.dataSource.register(KafkaDataSource)

    assert bounded(spark, base | {"subscribe": topic}) == sorted(values)


@pytest.mark.slow
@pytest.mark.timeout(240)
@pytest.mark.parametrize(
    "session",
    [pytest.param("connected", id="connect"), pytest.param("cluster", id="local-cluster")],
)
def test_other_sessions_read_the_same(
    request: pytest.FixtureRequest, topics: Topics, tmp_path: Path, session: str
) -> None:
    """A stream, restarted after partitions were added, and a bounded read: over Spark Connect, and with executors."""
    topic = topics.create(session)
    player = cast("Player", request.getfixturevalue(session))
    asked = {"bootstrap": topics.bootstrap, "folder": str(tmp_path), "topic": topic}
    first = topics.write(topic, 40)
    assert player.play("spark.kafka.played_stream", **asked) == [
        {"stream": sorted(first), "read": sorted(first)}
    ]
    topics.grow(topic, 3)
    second = topics.write(topic, 10) + topics.write(topic, 30, partition=2)

    both = sorted(first + second)
    assert player.play("spark.kafka.played_stream", **asked) == [{"stream": both, "read": both}]
