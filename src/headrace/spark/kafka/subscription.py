"""What a query reads, and where it starts and ends: its options as FLIP-288's subscribers and initializers. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final, TypeVar, cast

from headrace.connect.errors import ConfigError, TaskFailedError
from headrace.discovery.enumerator import DiscoveryPolicies
from headrace.discovery.offsets_initializer import (
    COMMITTED,
    LATEST,
    CommittedOffsets,
    EarliestOffsets,
    LatestOffsets,
    OffsetResetStrategy,
    OffsetsInitializer,
    SpecifiedOffsets,
    TimestampOffsets,
    initializer_problems,
)
from headrace.discovery.offsets_retriever import Offsets, PartitionOffsetsRetriever
from headrace.discovery.subscribers import (
    Subscriber,
    TopicListSubscriber,
    TopicPatternSubscriber,
    subscriber,
)
from headrace.kafka.sentences import listed
from headrace.kafka.topic_partition import TopicPartition
from headrace.spark.kafka.data_source import WHERE
from headrace.spark.kafka.options import ENDS, KafkaSourceOptions, kafka_source_options

_NAMED: Final[Mapping[str, Callable[[], OffsetsInitializer]]] = {
    "earliest": EarliestOffsets,
    "latest": LatestOffsets,
    "earliest-offset": EarliestOffsets,
    "latest-offset": LatestOffsets,
}
_KEYS: Final = {"starting offsets": "startingOffsets", "stopping offsets": "endingOffsets"}
_COMMITTED: Final = ("committed", "group-offsets")
_SPECIFIC: Final = re.compile(r"\s*partition:(\d+)\s*,\s*offset:(\d+)\s*")
_LEAST: Final = -3


@dataclass(frozen=True, slots=True)
class TimestampsByPartition:
    """As :class:`~headrace.discovery.offsets_initializer.TimestampOffsets`, with times for partitions.

    A partition that is not in *timestamps* has *otherwise*, and without that *unnamed*: the group's offset as a start, its
    latest one as a stop. *fails* is whether a partition without a record so late is an error, which Spark calls the
    strategy ``error``.
    """

    timestamps: Mapping[TopicPartition, int]
    otherwise: int | None = None
    unnamed: int = COMMITTED
    fails: bool = False
    auto_offset_reset: OffsetResetStrategy = OffsetResetStrategy.EARLIEST

    def partition_offsets(
        self, partitions: Collection[TopicPartition], retriever: PartitionOffsetsRetriever
    ) -> Offsets:
        """See :class:`~headrace.discovery.offsets_initializer.OffsetsInitializer`."""
        asked = {place: self.timestamps.get(place, self.otherwise) for place in partitions}
        times = {place: time for place, time in asked.items() if time is not None}
        # The ends are taken before the search, so that nothing written in between is skipped.
        ends = retriever.end_offsets(times) if times else {}
        found = retriever.offsets_for_times(times) if times else {}
        late = [place for place, offset in found.items() if offset is None]
        if late and self.fails:
            raise TaskFailedError(
                f"{late[0]} has no record as late as {times[late[0]]} ms, and startingOffsetsByTimestampStrategy is error."
            )
        offsets = dict.fromkeys(partitions, self.unnamed)
        for place, offset in found.items():
            offsets[place] = ends[place] if offset is None else offset
        return offsets


class SpecifiedEnds(SpecifiedOffsets):
    """Where a bounded read ends in each partition. One that is not named is an error, and an offset beyond its end is.

    By FLIP-288's rule for starts the one would end where the group is, and without a commit at its beginning: nothing
    would be read of it. The other would be waited for, and no one may ever write it.
    """

    def partition_offsets(
        self, partitions: Collection[TopicPartition], retriever: PartitionOffsetsRetriever
    ) -> Offsets:
        """See :class:`~headrace.discovery.offsets_initializer.OffsetsInitializer`."""
        unnamed = sorted(place for place in partitions if place not in self.offsets)
        if unnamed:
            raise TaskFailedError(
                f"The ending offsets do not say where {listed(unnamed)} ends. Name every partition that is read: -1 is where "
                "it ends now, -3 where the group is."
            )
        wanted = {place: self.offsets[place] for place in partitions}
        ends = retriever.high_watermarks([place for place, offset in wanted.items() if offset > 0])
        beyond = [
            f"{place} to {wanted[place]}, and it ends at {end}"
            for place, end in sorted(ends.items())
            if wanted[place] > end
        ]
        if beyond:
            raise TaskFailedError(
                f"The ending offsets are beyond what there is: {listed(beyond)}. Name an offset up to there, or -1 for "
                "where it ends now."
            )
        return wanted


def checked_options(given: Mapping[str, str]) -> KafkaSourceOptions:
    """The options *given* to a query, checked as far as that needs no broker.

    Raises :class:`~headrace.connect.errors.ConfigError`.
    """
    options = kafka_source_options(given)
    subscribed = subscriber_of(options)
    start, stop = starting(options), stopping(options)
    found = initializer_problems(start, stop, group_id=options.group_id, group_key="kafka.group.id")
    problems = [(_KEYS[what], sentence) for what, sentence in found]
    for key, by_time, initializer in (
        ("startingOffsets", "startingOffsetsByTimestamp", start),
        ("endingOffsets", "endingOffsetsByTimestamp", stop),
    ):
        if isinstance(initializer, SpecifiedOffsets):
            problems += ((key, each) for each in _not_read(subscribed, initializer.offsets))
        elif isinstance(initializer, TimestampsByPartition):
            problems += ((by_time, each) for each in _not_read(subscribed, initializer.timestamps))
    if problems:
        raise ConfigError(problems, where=WHERE)
    _refuse_idle_reset(options, start, stop)
    return options


def _not_read(subscribed: Subscriber, named: Iterable[TopicPartition]) -> Iterator[str]:
    """A sentence about what *named* has, and *subscribed* will never have; whether it exists is not known here."""
    match subscribed:
        case TopicListSubscriber(topics):
            wrong = {each.topic for each in named} - {*topics}
            reason = "is not subscribed to"
        case TopicPatternSubscriber(pattern):
            wrong = {each.topic for each in named if not pattern.fullmatch(each.topic)}
            reason = "does not match the pattern as a whole"
        case _:
            assigned = subscribed.subscribed({})
            wrong = {str(each) for each in named if each not in assigned}
            reason = "is not assigned"
    if wrong:
        yield f"{listed(sorted(wrong))} {reason}; leave it out here, or read it, too."


def _refuse_idle_reset(
    options: KafkaSourceOptions, start: OffsetsInitializer, stop: OffsetsInitializer
) -> None:
    """With Java's consumer ``auto.offset.reset`` says where to begin; here only where an offset is not there."""
    reset = _reset(options)
    is_used = any(
        isinstance(each, (CommittedOffsets, SpecifiedOffsets, TimestampsByPartition))
        for each in (start, stop)
    )
    if reset is None or is_used or reset is start.auto_offset_reset:
        return
    raise _refusal(
        "kafka.auto.offset.reset",
        f"It has no effect here: it is for committed and specified offsets that are not there. To begin at the {reset.value} "
        f"offset, set startingOffsets={reset.value}.",
    )


def refuse_ends(options: KafkaSourceOptions) -> None:
    """A stream has no end: raises :class:`~headrace.connect.errors.ConfigError` for options that give it one."""
    given = [
        name for name in ENDS if name in options.originals and options.bounded_mode != "unbounded"
    ]
    if given:
        raise _refusal(
            given[0],
            "A stream has no end. Use spark.read, or readStream with trigger(availableNow=True).",
        )


def refuse_latest_start(options: KafkaSourceOptions) -> None:
    """A bounded read from the end reads nothing: raises :class:`~headrace.connect.errors.ConfigError`."""
    if isinstance(starting(options), LatestOffsets):
        raise _refusal(
            "startingOffsets" if options.startup_mode is None else "scan.startup.mode",
            "From the latest offset there is nothing to read; it is for readStream.",
        )


def subscriber_of(options: KafkaSourceOptions) -> Subscriber:
    """What *options* subscribe to. Raises :class:`~headrace.connect.errors.ConfigError`."""
    assigned = None if options.assign is None else frozenset(_assigned(options.assign))
    try:
        return subscriber(
            topics=options.subscribe, pattern=options.subscribe_pattern, partitions=assigned
        )
    except ConfigError as error:
        # Which one is wrong: lists and sets of partitions always can be read.
        problems = [("subscribePattern", sentence) for _, sentence in error.problems]
        raise ConfigError(problems, where=WHERE) from None


def policies_of(options: KafkaSourceOptions) -> DiscoveryPolicies:
    """What to do about losses in what *options* subscribe to."""
    return options.policies(subscriber_of(options).growth)


def starting(options: KafkaSourceOptions) -> OffsetsInitializer:
    """Where a new query begins: at the earliest offset unless *options* say otherwise.

    Raises :class:`~headrace.connect.errors.ConfigError`.
    """
    given = _Given(
        offsets=("startingOffsets", options.starting_offsets),
        timestamp=options.starting_timestamp,
        timestamps=("startingOffsetsByTimestamp", options.starting_offsets_by_timestamp),
        mode=("scan.startup.mode", options.startup_mode),
        specific=("scan.startup.specific-offsets", options.startup_specific_offsets),
        millis=("scan.startup.timestamp-millis", options.startup_timestamp),
        fails=options.starting_offsets_by_timestamp_strategy.lower() == "error",
    )
    return _initializer(given, options) or EarliestOffsets()


def stopping(options: KafkaSourceOptions) -> OffsetsInitializer:
    """Where a bounded read ends: where the log ends now unless *options* say otherwise.

    Raises :class:`~headrace.connect.errors.ConfigError`.
    """
    given = _Given(
        offsets=("endingOffsets", options.ending_offsets),
        timestamp=options.ending_timestamp,
        timestamps=("endingOffsetsByTimestamp", options.ending_offsets_by_timestamp),
        mode=("scan.bounded.mode", options.bounded_mode),
        specific=("scan.bounded.specific-offsets", options.bounded_specific_offsets),
        millis=("scan.bounded.timestamp-millis", options.bounded_timestamp),
        unnamed=LATEST,
        specified=SpecifiedEnds,
    )
    return _initializer(given, options) or LatestOffsets()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Given:
    """What the options say about one end of what is read, those that are not set as ``None``, with their names."""

    offsets: tuple[str, str | None]
    timestamp: int | None
    timestamps: tuple[str, str | None]
    mode: tuple[str, str | None]
    specific: tuple[str, str | None]
    millis: tuple[str, int | None]
    fails: bool = False
    unnamed: int = COMMITTED
    specified: type[SpecifiedOffsets] = SpecifiedOffsets


def _initializer(given: _Given, options: KafkaSourceOptions) -> OffsetsInitializer | None:
    return _in_sparks_words(given, options) or _in_flinks_words(given, options)


def _in_sparks_words(given: _Given, options: KafkaSourceOptions) -> OffsetsInitializer | None:
    key, text = given.offsets
    if text is not None:
        if not text.lstrip().startswith("{"):
            return _named(key, text.strip().lower(), options)
        return given.specified(
            _by_partition(key, text, least=_LEAST), _reset(options) or OffsetResetStrategy.EARLIEST
        )
    if given.timestamp is not None:
        if given.fails:
            return TimestampsByPartition({}, otherwise=given.timestamp, fails=True)
        return TimestampOffsets(given.timestamp)
    key, text = given.timestamps
    if text is not None:
        return TimestampsByPartition(
            _by_partition(key, text, least=0),
            unnamed=given.unnamed,
            fails=given.fails,
            auto_offset_reset=_reset(options) or OffsetResetStrategy.EARLIEST,
        )
    return None


def _in_flinks_words(given: _Given, options: KafkaSourceOptions) -> OffsetsInitializer | None:
    key, mode = given.mode
    if mode == "timestamp":
        return TimestampOffsets(_required(given.millis, given.mode))
    if mode == "specific-offsets":
        return given.specified(
            _specific(given, options), _reset(options) or OffsetResetStrategy.EARLIEST
        )
    return None if mode in (None, "unbounded") else _named(key, mode, options)


def _named(key: str, word: str, options: KafkaSourceOptions) -> OffsetsInitializer:
    if word in _COMMITTED:
        return CommittedOffsets(_reset(options) or OffsetResetStrategy.NONE)
    if word not in _NAMED:
        raise _refusal(
            key,
            f"It is earliest, latest, committed, or JSON with an offset for each partition, and not {word!r}.",
        )
    return _NAMED[word]()


def _reset(options: KafkaSourceOptions) -> OffsetResetStrategy | None:
    word = options.client_settings.get("auto.offset.reset")
    if word is None:
        return None
    try:
        return OffsetResetStrategy(word.strip().lower())
    except ValueError:
        raise _refusal(
            "kafka.auto.offset.reset",
            "It is earliest, latest or none: where a partition begins whose committed or specified offset is not there. "
            "Where a query begins is said by startingOffsets.",
        ) from None


def _specific(given: _Given, options: KafkaSourceOptions) -> Offsets:
    key, _ = given.specific
    topics = options.subscribe or ()
    if len(topics) != 1:
        raise _refusal(
            key, "It is for one topic, named by topic or subscribe; use startingOffsets for more."
        )
    found = dict[TopicPartition, int]()
    for part in _required(given.specific, given.mode).strip(" ;").split(";"):
        pair = _SPECIFIC.fullmatch(part)
        if pair is None:
            raise _refusal(key, f"{part!r} is not like partition:0,offset:42.")
        found[TopicPartition(topics[0], int(pair[1]))] = int(pair[2])
    return found


_T = TypeVar("_T")


def _required(named: tuple[str, _T | None], mode: tuple[str, str | None]) -> _T:
    key, value = named
    if value is None:
        raise _refusal(key, f"{mode[0]}={mode[1]} needs it.")
    return value


def _by_partition(key: str, text: str, *, least: int) -> dict[TopicPartition, int]:
    """Numbers by partition, from Spark's JSON: ``{"topic": {"0": 23}}``."""
    found = dict[TopicPartition, int]()
    for topic, numbers in _document(key, text).items():
        if not isinstance(numbers, dict):
            raise _refusal(
                key, f"The topic {topic!r} needs an object with a number for each partition."
            )
        for partition, number in cast("dict[str, object]", numbers).items():
            if not partition.isdecimal() or type(number) is not int or number < least:
                raise _refusal(
                    key,
                    f"Partition {partition!r} of {topic!r} cannot be {number!r}: a partition and what is wanted of it are whole "
                    f"numbers, of at least 0 and {least}.",
                )
            found[TopicPartition(topic, int(partition))] = number
    return found


def _assigned(text: str) -> Iterator[TopicPartition]:
    for topic, partitions in _document("assign", text).items():
        if not isinstance(partitions, list) or not partitions:
            raise _refusal(
                "assign", f"The topic {topic!r} needs a list of partitions, such as [0, 1]."
            )
        for each in cast("list[object]", partitions):
            if type(each) is not int or each < 0:
                raise _refusal("assign", f"{each!r} is no partition of {topic!r}.")
            yield TopicPartition(topic, each)


def _document(key: str, text: str) -> dict[str, object]:
    try:
        found: object = json.loads(text)
    except ValueError as error:
        raise _refusal(key, f"It is not JSON: {error}.") from None
    if not isinstance(found, dict) or not found:
        raise _refusal(key, "It is a JSON object with an entry for each topic.")
    return cast("dict[str, object]", found)


def _refusal(key: str, sentence: str) -> ConfigError:
    return ConfigError([(key, sentence)], where=WHERE)
