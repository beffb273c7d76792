"""What a discovery finds that an operator should see: to be logged, counted, and by policy a failure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from enum import Enum, auto
from itertools import groupby
from typing import Final, NamedTuple

from headrace.kafka.sentences import SHOWN, counted, listed
from headrace.kafka.topic_partition import TopicPartition


class Change(Enum):
    """What kind of a finding it is."""

    UNSUBSCRIBED = auto()
    """No longer subscribed to: not read any more, its position is kept."""
    REMOVED = auto()
    """Gone from the cluster; its position is kept."""
    RETURNED = auto()
    """There again, under the same topic id: reading resumes at its position."""
    RECREATED = auto()
    """Another topic of the same name."""
    TRUNCATED = auto()
    """New, and its log does not begin at 0."""
    RESET = auto()
    """An initial partition starts elsewhere than was wanted, as the reset strategy says."""
    UNUSED = auto()
    """An offset was specified for a partition that is not there; found later, it starts at its beginning."""


LOSSES: Final = frozenset({Change.REMOVED, Change.RECREATED, Change.TRUNCATED})
"""Those that mean that records cannot be read any more."""


class Finding(NamedTuple):
    """One thing that was found, about *partitions* of one topic. *sentence* says it."""

    change: Change
    topic: str
    partitions: tuple[int, ...]
    sentence: str


def findings_by_topic(
    change: Change, details: Mapping[TopicPartition, object], says: str
) -> Iterator[Finding]:
    """One finding for each topic: how many of its partitions *says*, and the number of each with its detail."""
    for topic, of in groupby(sorted(details), key=lambda place: place.topic):
        places = [*of]
        shown = [f"{place.partition}{details[place]}" for place in places[:SHOWN]]
        sentence = f"Of the topic {topic}, {counted(len(places), 'partition')} {says}: {listed(shown, len(places))}."
        yield Finding(change, topic, tuple(place.partition for place in places), sentence)
