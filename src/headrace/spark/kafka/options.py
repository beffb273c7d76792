"""What a query says about its Kafka source: Spark's names and Flink's, one meaning. Pure.

Where Spark's meaning and FLIP-288's differ, FLIP-288's holds: a start that names only some partitions is complete, a
pattern is the topic's whole name, and reading begins at the earliest offset unless the query says otherwise.
"""

from __future__ import annotations

import difflib
import functools
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from headrace.connect.config import Config, Problem, every_problem, under
from headrace.connect.errors import ConfigError
from headrace.connect.setting import SettingType, setting
from headrace.discovery.enumerator import DataLossPolicy, DiscoveryPolicies, RecreatedPolicy
from headrace.discovery.settings import DiscoveryConfig, duration_ms
from headrace.discovery.subscribers import Growth
from headrace.kafka.batches.decoding import Decoding
from headrace.kafka.client_config import (
    ClientConfig,
    client_config,
    named_servers,
    servers_problem,
)
from headrace.kafka.wire import consumer_settings
from headrace.kafka.wire.cluster import IsolationLevel
from headrace.kafka.wire.consumer_settings import ISOLATION_LEVELS, checks_crcs
from headrace.kafka.wire.fetcher import FetchSettings
from headrace.kafka.wire.settings import wire_settings
from headrace.spark.kafka.client_settings import NUMBERS, OWNED, without_effect
from headrace.spark.kafka.data_source import HEADERS, TYPES, WHERE

COLUMNS: Final = tuple(TYPES)

PREFIXES: Final = ("kafka.", "properties.")
"""What settings of the Kafka client begin with: Spark's word, and Flink's."""

# Spark's or Flink's word for what another option says.
_ALIASES: Final[Mapping[str, str]] = {
    "topic": "subscribe",
    "topic-pattern": "subscribePattern",
}
# Options of Spark's own source, and what users may try, that have no meaning here.
_ELSEWHERE: Final[Mapping[str, str]] = {
    "groupIdPrefix": "Records are read without a consumer group; leave it out.",
    "fetchOffset.numRetries": "Requests are retried for kafka.default.api.timeout.ms; set that instead.",
    "fetchOffset.retryIntervalMs": "Pauses between retries grow by themselves; leave it out.",
    "kafkaConsumer.pollTimeoutMs": "Set kafka.default.api.timeout.ms instead.",
    "path": "Topics are named by subscribe, subscribePattern or assign; call load() without a path.",
    "bootstrap.servers": "The option is kafka.bootstrap.servers.",
    "group.id": "The option is kafka.group.id.",
}
_NO_TABLE: Final = (
    "Spark hands the options of a table of its catalog to no query. Make a temporary view: CREATE TEMPORARY VIEW … USING `headrace-kafka` "
    "OPTIONS (…), or load().createOrReplaceTempView(…)."
)
_COMMITTED, _UNCOMMITTED = ISOLATION_LEVELS
_INT32: Final = 2**31


def _is_duration(text: str) -> str | None:
    try:
        duration_ms(text)
    except ValueError as error:
        return str(error)
    return None


def _names_topics(names: tuple[str, ...]) -> str | None:
    return None if names and all(names) else "A topic's name is empty; is there a comma too many?"


class KafkaSourceOptions(DiscoveryConfig):
    """The options of one query's Kafka source, by the names that Spark's and Flink's users know.

    Made by :func:`kafka_source_options`; survives pickling. Client settings are in :attr:`client_settings`.
    """

    subscribe: tuple[str, ...] | None = setting(
        "subscribe",
        default=None,
        valid=_names_topics,
        doc="The topics to read, with commas between them.",
    )
    subscribe_pattern: str | None = setting(
        "subscribePattern",
        default=None,
        non_empty=True,
        doc="A regular expression for the whole names of the topics to read; internal topics never match.",
    )
    assign: str | None = setting(
        "assign", default=None, doc='The partitions to read, as JSON: {"orders": [0, 1]}.'
    )
    starting_offsets: str | None = setting(
        "startingOffsets",
        default=None,
        doc='Where a new query begins: earliest (the default), latest, committed, or JSON: {"orders": {"0": 23, "1": -2}}; '
        "-2 is the earliest, -1 the latest and -3 the committed offset. Partitions that it does not name begin at the "
        "group's committed offset, or by kafka.auto.offset.reset.",
    )
    starting_timestamp: int | None = setting(
        "startingTimestamp",
        default=None,
        kind=SettingType.LONG,
        at_least=0,
        doc="A new query begins at the first record with this timestamp or a later one, in milliseconds since 1970.",
    )
    starting_offsets_by_timestamp: str | None = setting(
        "startingOffsetsByTimestamp",
        default=None,
        doc='As startingTimestamp, for each partition, as JSON: {"orders": {"0": 1767225600000}}.',
    )
    starting_offsets_by_timestamp_strategy: str = setting(
        "startingOffsetsByTimestampStrategy",
        default="latest",
        one_of=("latest", "error"),
        ignore_case=True,
        doc="What to do in a partition without a record as late as the timestamp: begin at its end, or fail.",
    )
    ending_offsets: str | None = setting(
        "endingOffsets",
        default=None,
        doc="Where a read (not a stream) ends: latest (the default), committed, or JSON as for startingOffsets.",
    )
    ending_timestamp: int | None = setting(
        "endingTimestamp",
        default=None,
        kind=SettingType.LONG,
        at_least=0,
        doc="A read ends before the first record with this timestamp or a later one.",
    )
    ending_offsets_by_timestamp: str | None = setting(
        "endingOffsetsByTimestamp",
        default=None,
        doc="As endingTimestamp, for each partition, as JSON.",
    )
    startup_mode: str | None = setting(
        "scan.startup.mode",
        default=None,
        one_of=(
            "earliest-offset",
            "latest-offset",
            "group-offsets",
            "timestamp",
            "specific-offsets",
        ),
        doc="Flink's word for where a new query begins.",
    )
    startup_specific_offsets: str | None = setting(
        "scan.startup.specific-offsets",
        default=None,
        doc="For scan.startup.mode=specific-offsets and one topic: partition:0,offset:42;partition:1,offset:300.",
    )
    startup_timestamp: int | None = setting(
        "scan.startup.timestamp-millis",
        default=None,
        kind=SettingType.LONG,
        at_least=0,
        doc="For scan.startup.mode=timestamp.",
    )
    bounded_mode: str | None = setting(
        "scan.bounded.mode",
        default=None,
        one_of=("unbounded", "latest-offset", "group-offsets", "timestamp", "specific-offsets"),
        doc="Flink's word for where a read ends.",
    )
    bounded_specific_offsets: str | None = setting(
        "scan.bounded.specific-offsets",
        default=None,
        doc="For scan.bounded.mode=specific-offsets and one topic.",
    )
    bounded_timestamp: int | None = setting(
        "scan.bounded.timestamp-millis",
        default=None,
        kind=SettingType.LONG,
        at_least=0,
        doc="For scan.bounded.mode=timestamp.",
    )
    fail_on_data_loss: bool = setting(
        "failOnDataLoss",
        default=True,
        doc="Whether the query fails when records are gone that it has not read (expired, truncated, their topic "
        "deleted), or logs a warning with what is lost and continues.",
    )
    max_offsets: int | None = setting(
        "maxOffsetsPerTrigger",
        default=None,
        kind=SettingType.LONG,
        at_least=1,
        doc="The most offsets that one batch reads, shared by the partitions in proportion to their backlog.",
    )
    max_bytes: int | None = setting(
        "maxBytesPerTrigger",
        default=None,
        kind=SettingType.LONG,
        at_least=1,
        doc="About the most bytes that one batch reads, by the mean size of a partition's records on disk.",
    )
    max_partition_offsets: int | None = setting(
        "maxOffsetsPerPartition",
        default=None,
        kind=SettingType.LONG,
        at_least=1,
        doc="The most offsets that one batch reads of one partition.",
    )
    min_offsets: int | None = setting(
        "minOffsetsPerTrigger",
        default=None,
        kind=SettingType.LONG,
        at_least=1,
        doc="A batch waits until there are so many offsets to read, or maxTriggerDelay is over.",
    )
    max_trigger_delay: str = setting(
        "maxTriggerDelay",
        default="15m",
        valid=_is_duration,
        doc="How long a batch waits for minOffsetsPerTrigger.",
    )
    min_partitions: int = setting(
        "minPartitions",
        default=0,
        at_least=0,
        doc="The least number of Spark tasks for a batch; large ranges of offsets are split.",
    )
    max_records_per_partition: int | None = setting(
        "maxRecordsPerPartition",
        default=None,
        kind=SettingType.LONG,
        at_least=1,
        doc="The most offsets that one Spark task reads; larger ranges are split.",
    )
    max_record_batch_bytes: int = setting(
        "max.record.batch.bytes",
        default=Decoding().max_batch_bytes,
        at_least=1,
        at_most=2**31 - 1,
        doc="The most bytes that one of Kafka's record batches may have when it is decompressed. It bounds what a task holds when "
        "a small batch decompresses to a very large one; a larger batch is an error.",
    )
    include_headers: bool = setting(
        "includeHeaders", default=False, doc="Whether there is a column headers."
    )
    columns: tuple[str, ...] = setting(
        "columns",
        default=(),
        doc="The columns to read, of key, value, topic, partition, offset, timestamp, timestampType and headers. Spark does "
        "not tell a Python source which columns a query uses: fewer are faster. Default: all but headers.",
    )
    commits: bool = setting(
        "commit.offsets.on.checkpoint",
        default=True,
        doc="Whether what has been read is committed to kafka.group.id, for tools that show the lag; a query never "
        "resumes from there.",
    )

    @property
    def client_settings(self) -> Mapping[str, str]:
        """The Kafka client's settings, by the Java client's names."""
        return {key: value for prefix in PREFIXES for key, value in self.under(prefix).items()}

    @functools.cached_property
    def client(self) -> ClientConfig:
        """How to reach the cluster. Raises :class:`~headrace.connect.errors.ConfigError`."""
        return client_config(self.client_settings)

    @property
    def isolation(self) -> IsolationLevel:
        """Whether records of open and aborted transactions are left out; they are by default, other than in Spark."""
        return ISOLATION_LEVELS[self._isolation_level]

    @property
    def fetch_settings(self) -> FetchSettings:
        """How much a fetch brings, by the Java consumer's settings."""
        return consumer_settings.fetch_settings(self.client_settings, self.isolation)

    def policies(self, growth: Growth) -> DiscoveryPolicies:
        """What to do about losses: ``failOnDataLoss`` decides where nothing more exact is set."""
        usual = super().policies(growth)
        if self.fail_on_data_loss:
            return usual
        given = self.originals.keys()
        return DiscoveryPolicies(
            removed=usual.removed if f"{_ON}removed" in given else DataLossPolicy.CONTINUE,
            recreated=usual.recreated if f"{_ON}recreated" in given else RecreatedPolicy.RESTART,
            truncated=usual.truncated if f"{_ON}truncated" in given else DataLossPolicy.CONTINUE,
        )

    @property
    def decoding(self) -> Decoding:
        """How record batches are decoded; ``check.crcs`` is a setting of the Java consumer.

        Keys and values that the query leaves out are not copied.
        """
        return Decoding(
            with_headers=HEADERS in self.read_columns,
            without=frozenset({"key", "value"}).difference(self.read_columns),
            check_crcs=checks_crcs(self.client_settings),
            max_batch_bytes=self.max_record_batch_bytes,
        )

    @property
    def timeout_seconds(self) -> float:
        """How long Kafka may take to answer."""
        return int(self.client_settings.get("default.api.timeout.ms", 60_000)) / 1000

    @property
    def _isolation_level(self) -> str:
        return self.client_settings.get("isolation.level", _COMMITTED)

    @property
    def read_columns(self) -> tuple[str, ...]:
        """The columns of the source, in the order of :data:`COLUMNS`."""
        wanted = self.columns or (COLUMNS if self.include_headers else COLUMNS[:-1])
        return tuple(each for each in COLUMNS if each in wanted)

    @property
    def limits_batches(self) -> bool:
        """Whether a batch reads at most so much."""
        return any(
            each is not None
            for each in (self.max_offsets, self.max_bytes, self.max_partition_offsets)
        )

    @property
    def trigger_delay_seconds(self) -> float:
        """How long a batch waits for *min_offsets*."""
        return duration_ms(self.max_trigger_delay) / 1000

    @property
    def group_id(self) -> str | None:
        """The consumer group for committed offsets."""
        return self.client_settings.get("group.id") or None

    def warnings(self, *, is_bounded: bool) -> tuple[str, ...]:
        """Sentences about options that have no effect."""
        return (
            *super().warnings(is_bounded=is_bounded),
            *(self._idle_in_a_read() if is_bounded else ()),
            *without_effect(self.client_settings),
        )

    def _idle_in_a_read(self) -> Iterator[str]:
        given = [name for name in _OF_STREAMS if name in self.originals]
        verb = "has" if len(given) == 1 else "have"
        if given:
            yield (
                f"{' and '.join(given)} {verb} no effect: spark.read has no triggers, and reads everything at once. "
                "readStream with trigger(availableNow=True) reads the same in batches."
            )

    def check(self) -> Iterator[Problem]:
        """See :meth:`~headrace.connect.config.Config.check`."""
        yield from super().check()
        yield from self._exactly_one()
        yield from _at_most_one(self, _STARTS, "say where a new query begins")
        yield from _at_most_one(self, ENDS, "say where a read ends")
        for key, (mode, word) in _FOR_MODES.items():
            if key in self.originals and self.originals.get(mode) != word:
                yield key, f"It is for {mode}={word}, and has no effect without it."
        for key, problem in OWNED.items():
            if key in self.client_settings:
                yield f"kafka.{key}", f"The source sets it itself. {problem}"
        yield from self._wrong_numbers()
        yield from self._wrong_columns()
        if self._isolation_level not in ISOLATION_LEVELS:
            yield (
                "kafka.isolation.level",
                f"It is {_COMMITTED} (the default) or {_UNCOMMITTED}.",
            )
        for key in NUMBERS:
            given = self.client_settings.get(key, "1")
            if not given.strip().isdecimal() or not 0 < int(given) < _INT32:
                yield f"kafka.{key}", "It is a whole number, at least 1."
        yield from self._client_problems()

    def _wrong_columns(self) -> Iterator[Problem]:
        unknown = [each for each in self.columns if each not in COLUMNS]
        if unknown:
            yield "columns", f"There is no column {unknown[0]}; there are {', '.join(COLUMNS)}."
        if self.include_headers and self.columns and HEADERS not in self.columns:
            yield (
                "includeHeaders",
                "The option columns leaves headers out; add it there, or leave this out.",
            )
        if (
            HEADERS in self.columns
            and "includeHeaders" in self.originals
            and not self.include_headers
        ):
            yield (
                "includeHeaders",
                "It is false, and the option columns names headers; leave out one of the two.",
            )

    def _client_problems(self) -> Iterator[Problem]:
        servers = self.client_settings.get("bootstrap.servers", "")
        named = named_servers(servers)
        if not named:
            yield (
                "kafka.bootstrap.servers",
                "Where is the cluster? Give host:port, with commas between several.",
            )
            return
        if (problem := servers_problem(named)) is not None:
            yield "kafka.bootstrap.servers", f"{problem}."
        try:
            wire_settings(self.client.settings)
        except ConfigError as error:
            yield from ((f"kafka.{key}", sentence) for key, sentence in error.problems)

    def _exactly_one(self) -> Iterator[Problem]:
        given = [name for name in _SUBSCRIPTIONS if name in self.originals]
        if not given:
            yield (
                "subscribe",
                "What is to be read? Set one of subscribe, subscribePattern and assign.",
            )
        if len(given) > 1:
            yield (
                given[1],
                f"Set one of subscribe, subscribePattern and assign; {given[0]} is set, too.",
            )

    def _wrong_numbers(self) -> Iterator[Problem]:
        least, most = self.min_offsets, self.max_offsets
        if least is not None and most is not None and least > most:
            yield "minOffsetsPerTrigger", f"{least} is more than maxOffsetsPerTrigger ({most})."


_ON: Final = "partition.discovery.on."
_SUBSCRIPTIONS: Final = ("subscribe", "subscribePattern", "assign")
_STARTS: Final = (
    "startingOffsets",
    "startingTimestamp",
    "startingOffsetsByTimestamp",
    "scan.startup.mode",
)
# Options that only mean something where there are triggers.
_OF_STREAMS: Final = (
    "maxOffsetsPerTrigger",
    "maxBytesPerTrigger",
    "maxOffsetsPerPartition",
    "minOffsetsPerTrigger",
    "maxTriggerDelay",
    "commit.offsets.on.checkpoint",
)
# Options that only mean something with a mode.
_FOR_MODES: Final = {
    f"scan.{which}.{what}": (f"scan.{which}.mode", mode)
    for which in ("startup", "bounded")
    for what, mode in (("timestamp-millis", "timestamp"), ("specific-offsets", "specific-offsets"))
}
ENDS: Final = ("endingOffsets", "endingTimestamp", "endingOffsetsByTimestamp", "scan.bounded.mode")


def _at_most_one(options: Config, names: Iterable[str], what: str) -> Iterator[Problem]:
    given = [name for name in names if name in options.originals]
    if len(given) > 1:
        yield given[1], f"{given[0]} and {given[1]} both {what}; leave one out."


@functools.cache
def _known() -> Mapping[str, str]:
    """Every option by its name in lower case, as Spark hands them over."""
    names = [each.name for each in KafkaSourceOptions.settings()]
    return {name.lower(): name for name in (*names, *_ALIASES)}


def kafka_source_options(given: Mapping[str, str]) -> KafkaSourceOptions:
    """The options *given* to a query, whose names may be in any case.

    Raises :class:`~headrace.connect.errors.ConfigError` with every problem; values of client settings, which may be
    secret, are in none of its messages.
    """
    # An option of a table of Spark's catalog comes with this prefix, too, and only there.
    if any(key.lower().startswith("option.") for key in given):
        raise ConfigError([("CREATE TABLE", _NO_TABLE)], where=WHERE)
    known, problems = dict[str, str](), list[Problem]()
    for key, value in given.items():
        if key.lower().startswith(PREFIXES):
            known[key.lower()] = value
            continue
        name = _known().get(key.lower())
        if name is None:
            problems.append(_unknown(key))
            continue
        meant = _ALIASES.get(name, name)
        text = value.replace(";", ",") if name == "topic" else value
        if known.setdefault(meant, text) != text:
            # Either of the two may have come first.
            word = next(alias for alias, other in _ALIASES.items() if other == meant)
            problems.append(
                (word, f"It says the same as {meant}, with another value; leave one out.")
            )
    problems += _twice(known)
    problems += every_problem(KafkaSourceOptions, known)
    if problems:
        raise ConfigError(problems, where=WHERE)
    return KafkaSourceOptions.parse(known, where=WHERE)


def _twice(known: Mapping[str, str]) -> Iterator[Problem]:
    ours, theirs = (under(known, prefix) for prefix in PREFIXES)
    for key in ours.keys() & theirs.keys():
        if ours[key] != theirs[key]:
            yield (
                f"properties.{key}",
                f"It says the same as kafka.{key}, with another value; leave one out.",
            )


def _unknown(key: str) -> Problem:
    for name, advice in _ELSEWHERE.items():
        if key.lower() == name.lower():
            return name, advice
    near = difflib.get_close_matches(key.lower(), _known(), n=1)
    meant = f"; is {_known()[near[0]]} meant?" if near else "."
    return key, f"There is no such option{meant}"
