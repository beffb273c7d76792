"""A query's options: Spark's words and Flink's, and what is refused."""

from __future__ import annotations

import pickle
import re
from typing import Any

import pytest

from discovery.cluster_double import ClusterDouble, Log
from headrace.connect.errors import ConfigError, TaskFailedError
from headrace.discovery.enumerator import DataLossPolicy, RecreatedPolicy
from headrace.discovery.offsets_initializer import (
    COMMITTED,
    LATEST,
    CommittedOffsets,
    EarliestOffsets,
    LatestOffsets,
    OffsetResetStrategy,
    SpecifiedOffsets,
    TimestampOffsets,
)
from headrace.discovery.offsets_retriever import ClusterOffsetsRetriever
from headrace.discovery.subscribers import (
    Growth,
    PartitionSetSubscriber,
    TopicListSubscriber,
    TopicPatternSubscriber,
)
from headrace.kafka.deadline import Deadline
from headrace.kafka.topic_partition import TopicPartition
from headrace.kafka.wire.cluster import IsolationLevel
from headrace.kafka.wire.settings import wire_settings
from headrace.spark.kafka.client_settings import without_effect
from headrace.spark.kafka.options import KafkaSourceOptions
from headrace.spark.kafka.stream import KafkaStreamReader
from headrace.spark.kafka.subscription import (
    SpecifiedEnds,
    TimestampsByPartition,
    checked_options,
    starting,
    stopping,
    subscriber_of,
)

BASE = {"kafka.bootstrap.servers": "localhost:9092", "subscribe": "t"}
T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)


def options(**given: str) -> KafkaSourceOptions:
    """The options of a query that reads the topic ``t``."""
    return checked_options(BASE | given)


def refusal(given: dict[str, str]) -> str:
    """What the error says."""
    with pytest.raises(ConfigError) as caught:
        checked_options(given)
    return str(caught.value)


def test_what_a_record_batch_may_decompress_to_is_bounded_by_an_option() -> None:
    """Within what Arrow's columns hold."""
    assert options().decoding.max_batch_bytes == 128 << 20
    assert options(**{"max.record.batch.bytes": "7"}).decoding.max_batch_bytes == 7
    assert "max.record.batch.bytes" in refusal(BASE | {"max.record.batch.bytes": str(2**31)})


def test_the_usual_is_to_read_everything_committed_from_the_beginning() -> None:
    """Other than with Spark, which begins at the end and reads what is uncommitted."""
    usual = options()
    assert starting(usual) == EarliestOffsets()
    assert stopping(usual) == LatestOffsets()
    assert usual.isolation is IsolationLevel.READ_COMMITTED
    assert usual.interval_seconds() == 300.0
    assert usual.read_columns == (
        "key",
        "value",
        "topic",
        "partition",
        "offset",
        "timestamp",
        "timestampType",
    )


def test_names_are_found_in_any_case_as_spark_hands_them_over() -> None:
    """It knows them in lower case."""
    lowered = {key.lower(): value for key, value in (BASE | {"maxOffsetsPerTrigger": "7"}).items()}
    assert checked_options(lowered).max_offsets == 7


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"subscribe": "a,b"}, TopicListSubscriber(("a", "b"))),
        ({"topic": "a;b"}, TopicListSubscriber(("a", "b"))),
        ({"assign": '{"t":[0,1]}'}, PartitionSetSubscriber(frozenset({T0, T1}))),
    ],
)
def test_what_is_read(given: dict[str, str], expected: object) -> None:
    """By either word."""
    base = {"kafka.bootstrap.servers": "localhost:9092"}
    assert subscriber_of(checked_options(base | given)) == expected


def test_a_pattern_is_the_whole_name_in_both_words() -> None:
    """Spark itself searches in the name."""
    base = {"kafka.bootstrap.servers": "localhost:9092"}
    for word in ("subscribePattern", "topic-pattern"):
        found = subscriber_of(checked_options(base | {word: "t.*"}))
        assert isinstance(found, TopicPatternSubscriber)
        assert found.pattern.fullmatch("t1")


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"startingOffsets": "earliest"}, EarliestOffsets()),
        ({"startingOffsets": "Latest"}, LatestOffsets()),
        ({"scan.startup.mode": "latest-offset"}, LatestOffsets()),
        (
            {"startingOffsets": "committed", "kafka.group.id": "g"},
            CommittedOffsets(OffsetResetStrategy.NONE),
        ),
        (
            {
                "scan.startup.mode": "group-offsets",
                "properties.group.id": "g",
                "properties.auto.offset.reset": "latest",
            },
            CommittedOffsets(OffsetResetStrategy.LATEST),
        ),
        (
            {"startingOffsets": '{"t":{"0":23,"1":-2}}'},
            SpecifiedOffsets({T0: 23, T1: -2}, OffsetResetStrategy.EARLIEST),
        ),
        (
            {
                "scan.startup.mode": "specific-offsets",
                "scan.startup.specific-offsets": "partition:0,offset:42;partition:1,offset:300",
            },
            SpecifiedOffsets({T0: 42, T1: 300}, OffsetResetStrategy.EARLIEST),
        ),
        ({"startingTimestamp": "1000"}, TimestampOffsets(1000)),
        (
            {"startingTimestamp": "1000", "startingOffsetsByTimestampStrategy": "error"},
            TimestampsByPartition({}, otherwise=1000, fails=True),
        ),
        (
            {"scan.startup.mode": "timestamp", "scan.startup.timestamp-millis": "5"},
            TimestampOffsets(5),
        ),
        (
            {
                "startingOffsetsByTimestamp": '{"t":{"0":9}}',
                "startingOffsetsByTimestampStrategy": "error",
            },
            TimestampsByPartition({T0: 9}, fails=True),
        ),
    ],
)
def test_where_a_query_begins(given: dict[str, str], expected: object) -> None:
    """Spark's words and Flink's."""
    assert starting(checked_options(BASE | given)) == expected


def test_where_a_read_ends() -> None:
    """As where it begins."""
    assert stopping(options(endingTimestamp="8")) == TimestampOffsets(8)
    timed = options(endingOffsetsByTimestamp='{"t":{"0":8}}')
    assert stopping(timed) == TimestampsByPartition({T0: 8}, unnamed=LATEST)
    ends = checked_options(BASE | {"endingOffsets": '{"t":{"0":-1}}'})
    assert stopping(ends) == SpecifiedEnds({T0: -1}, OffsetResetStrategy.EARLIEST)


@pytest.mark.parametrize(
    "given",
    [
        {"endingOffsets": '{"t":{"0":8}}'},
        {
            "scan.bounded.mode": "specific-offsets",
            "scan.bounded.specific-offsets": "partition:0,offset:8",
        },
    ],
)
def test_e58_an_end_is_named_for_every_partition(given: dict[str, str]) -> None:
    """With Flink the others end where they begin, without a word; Spark refuses it, too."""
    ends = stopping(checked_options(BASE | given))
    cluster = ClusterDouble.of(Log(0, 8), Log(0, 8))
    retriever = ClusterOffsetsRetriever(cluster=cluster, deadline=Deadline.after(1))

    assert {T0: 8} == ends.partition_offsets([T0], retriever)
    with pytest.raises(TaskFailedError, match=r"do not say where t-1 ends\. Name every partition"):
        ends.partition_offsets([T0, T1], retriever)


def test_an_end_beyond_the_log_is_an_error_and_not_waited_for() -> None:
    """An open transaction before it is: its records are in the log."""
    ends = stopping(options(endingOffsets='{"t":{"0":9,"1":-1}}'))

    for log in (Log(0, 9), Log(0, 12, stable=3)):
        assert {T0: 9, T1: -1} == ends.partition_offsets([T0, T1], _retriever(log, Log(0, 4)))
    with pytest.raises(
        TaskFailedError, match=r"beyond what there is: t-0 to 9, and it ends at 5\."
    ):
        ends.partition_offsets([T0, T1], _retriever(Log(0, 5), Log(0, 4)))


def _retriever(*logs: Log) -> ClusterOffsetsRetriever:
    return ClusterOffsetsRetriever(cluster=ClusterDouble.of(*logs), deadline=Deadline.after(1))


@pytest.mark.parametrize(
    ("subscribed", "named", "words"),
    [
        ({"subscribe": "t,u"}, "x", "x is not subscribed to"),
        ({"subscribePattern": "u.*"}, "xu", "xu does not match the pattern as a whole"),
        ({"assign": '{"x":[1,2]}'}, "x", "x-0 is not assigned"),
    ],
)
@pytest.mark.parametrize(
    "option",
    [
        "startingOffsets",
        "startingOffsetsByTimestamp",
        "endingOffsets",
        "endingOffsetsByTimestamp",
    ],
)
def test_offsets_are_for_what_is_read(
    subscribed: dict[str, str], named: str, words: str, option: str
) -> None:
    """A name that is spelt wrong would not count, and the topic be read from its beginning."""
    base = {"kafka.bootstrap.servers": "localhost:9092"} | subscribed
    offsets = f'{{"{named}":{{"0":1}}}}'

    assert f"{option}: {words}" in refusal(base | {option: offsets})


@pytest.mark.parametrize(
    "subscribed", [{"subscribe": "t"}, {"subscribePattern": "t+"}, {"assign": '{"t":[0]}'}]
)
def test_offsets_of_what_is_read_are_accepted(subscribed: dict[str, str]) -> None:
    """Whether it exists is seen later."""
    base = {"kafka.bootstrap.servers": "localhost:9092"} | subscribed

    assert checked_options(base | {"startingOffsets": '{"t":{"0":1}}'}).starting_offsets


@pytest.mark.parametrize(
    "given", [{"subscribe": "p", "topic": "q"}, {"topic": "q", "subscribe": "p"}]
)
def test_two_words_for_one_option_are_both_named(given: dict[str, str]) -> None:
    """In whichever order Spark hands them over."""
    base = {"kafka.bootstrap.servers": "localhost:9092"}

    assert "topic: It says the same as subscribe, with" in refusal(base | given)


def test_a_table_of_a_catalog_is_refused_with_what_to_do_instead() -> None:
    """Spark hands its properties over, each option twice: that is one problem, and not one for each of them."""
    table = {f"option.{key}": value for key, value in BASE.items()}
    said = refusal(BASE | table | {"provider": "headrace-kafka", "owner": "me", "path": "/kt"})

    assert "1 problem" in said
    assert "CREATE TEMPORARY VIEW" in said


def test_a_pattern_that_is_none_is_the_fault_of_the_option() -> None:
    """With where it is set."""
    said = refusal({"kafka.bootstrap.servers": "localhost:9092", "subscribePattern": "o("})

    assert 'The source format("headrace-kafka") has 1 problem' in said
    assert "subscribePattern: 'o('" in said


def test_limits_of_batches_are_warned_about_in_a_read() -> None:
    """It has no batches."""
    limited = options(maxOffsetsPerTrigger="5", maxTriggerDelay="1m")

    assert () == limited.warnings(is_bounded=False)
    [warning] = limited.warnings(is_bounded=True)
    assert "maxOffsetsPerTrigger and maxTriggerDelay have no effect: spark.read" in warning


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"subscribe": ""}, "subscribe"),
        ({"subscribePattern": "t.*"}, "subscribe is set, too"),
        ({"topic": "u"}, "leave one out"),
        ({"startingTimestamp": "1", "startingOffsets": "latest"}, "leave one out"),
        ({"startingOffsets": "newest"}, "It is earliest, latest, committed, or JSON"),
        ({"startingOffsets": '{"t":{"0":-4}}'}, "Partition '0' of 't' cannot be -4"),
        ({"startingOffsets": '{"t":'}, "It is not JSON"),
        ({"subscribe": "t, u,"}, "A topic's name is empty; is there a comma too many?"),
        ({"startingOffsets": "committed"}, "kafka.group.id is required"),
        ({"kafka.bootstrap.servers": "localhost"}, "localhost. It must be host:port"),
        ({"kafka.bootstrap.servers": "a:9092,b:99999"}, "b:99999. It must be host:port"),
        ({"startingTimestamp": "-1"}, "startingTimestamp"),
        ({"scan.startup.mode": "timestamp"}, "scan.startup.timestamp-millis"),
        ({"scan.startup.timestamp-millis": "5"}, "It is for scan.startup.mode=timestamp"),
        (
            {"scan.startup.mode": "latest-offset", "scan.startup.timestamp-millis": "5"},
            "It is for scan.startup.mode=timestamp",
        ),
        (
            {"startingOffsets": "latest", "scan.startup.specific-offsets": "partition:0,offset:3"},
            "It is for scan.startup.mode=specific-offsets",
        ),
        ({"scan.bounded.timestamp-millis": "5"}, "It is for scan.bounded.mode=timestamp"),
        (
            {"scan.bounded.mode": "unbounded", "scan.bounded.timestamp-millis": "5"},
            "It is for scan.bounded.mode=timestamp",
        ),
        ({"kafka.auto.offset.reset": "latest"}, "set startingOffsets=latest"),
        ({"kafka.auto.offset.reset": "none", "startingTimestamp": "x"}, "startingTimestamp"),
        ({"kafka.auto.offset.reset": "earliest", "startingOffsets": "latest"}, "no effect here"),
        ({"endingOffsets": "earliest"}, "ending"),
        ({"startingOfsets": "latest"}, "is startingOffsets meant?"),
        ({"groupidprefix": "x"}, "groupIdPrefix: Records are read without a consumer group"),
        ({"bootstrap.servers": "x"}, "kafka.bootstrap.servers"),
        ({"kafka.value.deserializer": "x"}, "Values arrive as bytes"),
        ({"kafka.enable.auto.commit": "true"}, "checkpoint"),
        ({"kafka.allow.auto.create.topics": "true"}, "never creates topics"),
        ({"kafka.auto.offset.reset": "newest", "startingOffsets": "committed"}, "earliest, latest"),
        ({"kafka.isolation.level": "committed"}, "read_committed"),
        ({"kafka.fetch.max.bytes": "0"}, "at least 1"),
        ({"kafka.group.id": "a", "properties.group.id": "b"}, "leave one out"),
        ({"minOffsetsPerTrigger": "9", "maxOffsetsPerTrigger": "3"}, "is more than"),
        ({"maxTriggerDelay": "soon"}, "duration"),
        ({"columns": "key,values"}, "There is no column values"),
        ({"columns": "key", "includeHeaders": "true"}, "leaves headers out"),
        ({"columns": "key,headers", "includeHeaders": "false"}, "names headers"),
        ({"kafka.security.protocol": "SASL_SSL", "kafka.sasl.mechanism": "MAGIC"}, "MAGIC"),
        (
            {
                "partition.discovery.interval.ms": "1000",
                "scan.topic-partition-discovery.interval": "2 s",
            },
            "give one of the two",
        ),
        ({"partition.discovery.interval.ms": "abc"}, "partition.discovery.interval.ms"),
        ({"scan.topic-partition-discovery.interval": "-5 min"}, "no duration"),
    ],
)
def test_what_is_refused_and_what_the_sentence_says(given: dict[str, str], words: str) -> None:
    """A word that has no effect is worse than an error."""
    assert words in refusal(BASE | given)


def test_a_reset_that_is_used_or_says_the_same_is_accepted() -> None:
    """Configurations of Java's consumers have it."""
    for given in (
        {},
        {"endingOffsets": "committed", "kafka.group.id": "g"},
        {"startingOffsets": '{"t":{"0":3}}'},
        {"startingOffsetsByTimestamp": '{"t":{"0":3}}'},
    ):
        assert options(**given, **{"kafka.auto.offset.reset": "earliest"}).subscribe == ("t",)


def test_the_wrong_duration_of_a_delay_says_nothing_of_discovery() -> None:
    """Only that of an interval does."""
    assert "discovery" not in refusal(BASE | {"maxTriggerDelay": "soon"})
    interval = refusal(BASE | {"scan.topic-partition-discovery.interval": "soon"})
    assert "0 switches discovery off" in interval


def test_a_partition_without_a_time_begins_as_one_without_an_offset() -> None:
    """At the group's committed offset, or where the reset strategy says."""
    given = {"startingOffsetsByTimestamp": '{"t":{"0":3}}', "kafka.auto.offset.reset": "latest"}
    start = starting(options(**given))

    assert start.auto_offset_reset is OffsetResetStrategy.LATEST
    retriever = ClusterOffsetsRetriever(cluster=ClusterDouble(), deadline=Deadline.after(1))
    assert start.partition_offsets([T1], retriever) == {T1: COMMITTED}


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ("feth.max.bytes", "kafka.feth.max.bytes has no effect.* Is kafka.fetch.max.bytes meant"),
        ("max.poll.records", "kafka.max.poll.records has no effect.*consumer.$"),
        ("ssl.enabled.protocols", "kafka.ssl.enabled.protocols has no effect.*consumer.$"),
        ("entirely.different", "kafka.entirely.different has no effect.*consumer.$"),
    ],
)
def test_a_client_setting_without_effect_is_a_warning(given: str, sentence: str) -> None:
    """With the one that may be meant; those of Java's consumer are not refused."""
    [warning] = options(**{f"kafka.{given}": "5"}).warnings(is_bounded=False)

    assert re.search(sentence, warning)


def test_many_client_settings_without_effect_are_counted() -> None:
    """A log with all of them is not readable."""
    many = {f"kafka.nonsense.{number}": "1" for number in range(30)}
    *_, last = options(**many).warnings(is_bounded=True)

    assert last.startswith("10 other options")


def test_warnings_are_logged_where_a_stream_is_planned(caplog: pytest.LogCaptureFixture) -> None:
    """Once in its process, and not by the tasks."""
    reader = KafkaStreamReader(options(**{"kafka.feth.max.bytes": "5"}))
    for _ in range(2):
        reader.reportLatestOffset()

    assert 1 == caplog.text.count("Is kafka.fetch.max.bytes meant?")


class Recording(dict[str, str]):
    """Keeps the names that were looked for."""

    def __init__(self, **given: str) -> None:
        super().__init__(given)
        self.names = set[str]()

    def get(self, key: str, default: Any = None) -> Any:  # noqa: ANN401
        """As a dict."""
        self.names.add(key)
        return super().get(key, default)

    def __contains__(self, key: object) -> bool:
        self.names.add(str(key))
        return super().__contains__(key)


def test_what_a_connection_reads_has_an_effect() -> None:
    """In every way to log in."""
    for given in (
        {"security.protocol": "SSL"},
        {"security.protocol": "SASL_SSL", "sasl.mechanisms": "PLAIN"},
        {
            "security.protocol": "SASL_SSL",
            "sasl.mechanisms": "OAUTHBEARER",
            "sasl.oauthbearer.token.endpoint.url": "https://x",
            "sasl.oauthbearer.client.id": "me",
            "sasl.oauthbearer.client.secret": "secret",
        },
    ):
        recorded = Recording(**given)
        wire_settings(recorded)

        assert len(recorded.names) > 10
        assert [] == [*without_effect(recorded.names)]


def test_every_problem_is_shown_at_once_and_no_secret() -> None:
    """One run of a query shows them all."""
    said = refusal(
        {
            "kafka.bootstrap.servers": "localhost:9092",
            "kafka.security.protocol": "SASL_PLAINTEXT",
            "kafka.sasl.mechanism": "PLAIN",
            "kafka.sasl.jaas.config": 'X required username="u" password="hunter2";',
            "minPartitions": "-1",
            "nonsense": "1",
        }
    )
    assert "minPartitions" in said
    assert "nonsense" in said
    assert "subscribe" in said
    assert "hunter2" not in said


def test_options_cross_to_the_tasks_and_hide_their_secrets() -> None:
    """They are pickled with the reader."""
    secret = checked_options(
        BASE
        | {
            "kafka.security.protocol": "SASL_PLAINTEXT",
            "kafka.sasl.mechanism": "PLAIN",
            "kafka.sasl.jaas.config": "org.apache.kafka.common.security.plain.PlainLoginModule required "
            'username="u" password="hunter2";',
        }
    )
    again = pickle.loads(pickle.dumps(secret))
    assert again.client == secret.client
    assert "hunter2" not in repr(secret)


def test_columns_are_in_the_order_of_the_source() -> None:
    """Whatever order they are named in."""
    assert options(columns="value,key").read_columns == ("key", "value")
    assert options(includeHeaders="true").read_columns[-1] == "headers"


def test_e50_one_setting_of_two_names_for_the_interval() -> None:
    """In milliseconds, or as a duration."""
    assert options(**{"scan.topic-partition-discovery.interval": "30 s"}).interval_seconds() == 30.0
    assert options(**{"partition.discovery.interval.ms": "-1"}).interval_seconds() is None


def test_fail_on_data_loss_decides_where_nothing_more_exact_is_set() -> None:
    """A topic that was created again is read from its beginning: nothing of it has been read."""
    careful = options().policies(Growth.PARTITIONS)
    assert careful.recreated is RecreatedPolicy.FAIL
    assert careful.removed is DataLossPolicy.FAIL
    bold = options(failOnDataLoss="false").policies(Growth.PARTITIONS)
    assert bold.recreated is RecreatedPolicy.RESTART
    assert bold.truncated is DataLossPolicy.CONTINUE
    mixed = options(
        **{"failOnDataLoss": "false", "partition.discovery.on.recreated": "fail"}
    ).policies(Growth.PARTITIONS)
    assert mixed.recreated is RecreatedPolicy.FAIL
