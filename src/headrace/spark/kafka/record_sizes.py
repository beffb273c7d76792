"""About how many bytes there are to read, from samples: brokers tell offsets, not bytes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from itertools import islice
from typing import Final

from headrace.connect.errors import RetriableError
from headrace.discovery.offsets_retriever import Offsets
from headrace.kafka.deadline import Deadline
from headrace.kafka.topic_partition import TopicPartition
from headrace.kafka.wire.fetcher import LOST, FetchRange
from headrace.spark.kafka.connection import fetching
from headrace.spark.kafka.options import KafkaSourceOptions

_SAMPLE_BYTES: Final = 64 * 1024
# A trigger takes so many first samples, and renews so many, which bounds what it fetches to a few megabytes.
_FIRST, _RENEWED = 50, 10
_SAMPLE_SECONDS: Final = 5.0
# Where nothing answers with a sample.
_USUAL_BYTES: Final = 1024.0

Sample = Callable[[Offsets], Mapping[TopicPartition, float]]


class RecordSizes:
    """The mean bytes of an offset, as they lie in the log (compressed), of each partition that a query reads.

    An estimate, and so kept in memory only. Used by one thread, once a trigger.
    """

    def __init__(self, sample: Sample) -> None:
        self._sample = sample
        self._means: dict[TopicPartition, float] = {}

    def offsets_in(self, most_bytes: int, backlog: Mapping[TopicPartition, tuple[int, int]]) -> int:
        """How many offsets of *backlog*, in proportion to what each partition has, are about *most_bytes*; at least 1."""
        self._renew({place: start for place, (start, _) in backlog.items()})
        usual = sum(self._means.values()) / len(self._means) if self._means else _USUAL_BYTES
        sizes = {place: end - start for place, (start, end) in backlog.items()}
        in_all = sum(size * self._means.get(place, usual) for place, size in sizes.items())
        return max(1, int(sum(sizes.values()) * min(1.0, most_bytes / max(in_all, 1.0))))

    def _renew(self, begins: Offsets) -> None:
        fresh = islice((place for place in begins if place not in self._means), _FIRST)
        oldest = islice((place for place in self._means if place in begins), _RENEWED)
        wanted = {place: begins[place] for place in (*fresh, *oldest)}
        for place, mean in self._sample(wanted).items():
            # The renewed go to the end.
            self._means.pop(place, None)
            self._means[place] = mean


def sampled(options: KafkaSourceOptions, begins: Offsets) -> Mapping[TopicPartition, float]:
    """The mean bytes of the offsets that follow *begins*; without the partitions that do not answer in time."""
    small = replace(
        options.fetch_settings,
        max_partition_bytes=_SAMPLE_BYTES,
        max_bytes=max(_SAMPLE_BYTES, options.fetch_settings.max_bytes),
    )
    means = dict[TopicPartition, float]()
    waiting = set(begins)
    deadline = Deadline.after(_SAMPLE_SECONDS)
    ranges = [FetchRange(place=place, start=begin) for place, begin in begins.items()]
    with fetching(options, ranges, small) as fetcher:
        while waiting and not deadline.expired:
            try:
                answers = fetcher.poll(deadline)
            except RetriableError:
                break
            except LOST as error:
                # What is lost is reported by who reads it.
                waiting.discard(error.place)
                continue
            for answer in answers:
                first = min(answer.fetch_offset, answer.headers[0].base_offset)
                length = sum(each.length for each in answer.headers)
                means[answer.place] = length / max(1, answer.next_offset - first)
                waiting.discard(answer.place)
            fetcher.remove(means.keys() - waiting)
    return means
