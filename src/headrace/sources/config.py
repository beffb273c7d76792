"""The settings that every native source has."""

from __future__ import annotations

from collections.abc import Iterator

from headrace.connect.config import Config, Problem, setting
from headrace.sources.distribution import DISTRIBUTIONS
from headrace.sources.extractors.by_name import EXTRACTORS

_MIB = 1024 * 1024


class SourceConfig(Config):
    """Extend it with what the source needs. Keys and defaults are those of the seed's framework."""

    topic: str | None = setting(
        default=None,
        importance="high",
        non_empty=True,
        doc="The topic to send to. Default: what the object or its key tells.",
    )
    max_poll_records: int = setting(
        default=500,
        at_least=1,
        doc="The most records that one poll returns; twice as many may wait to be polled.",
    )
    queue_bytes: int = setting(
        "native.queue.bytes",
        default=16 * _MIB,
        at_least=1,
        doc="The most bytes that may wait to be polled; one poll's records always may.",
    )
    distribution_type: str = setting(
        default="OBJECT_HASH",
        one_of=DISTRIBUTIONS,
        ignore_case=True,
        doc="Which task reads an object. OBJECT_HASH: told by its key. PARTITION: told by the Kafka "
        "partition that its key or content tells. ALL: every task reads what it gets.",
    )
    ring_buffer_size: int = setting(
        default=1000,
        at_least=0,
        doc="How many of the last finished keys a listing goes back to find objects that came late; "
        "0 lists from the beginning each time.",
    )
    native_start_key: str | None = setting(
        default=None,
        doc="The key to list from as long as nothing was finished. Default: from the first one on.",
    )
    max_objects: int = setting(
        "native.max.objects.per.round",
        default=10_000,
        at_least=0,
        doc="The most objects that one plan reads, where the driver plans; 0 for no limit.",
    )
    extractor: str = setting(
        "extractor.class",
        default="bytes",
        one_of=tuple(EXTRACTORS),
        ignore_case=True,
        doc="How an object becomes records.",
    )
    extractor_buffer: int = setting(
        default=4096,
        at_least=1,
        at_most=256 * _MIB,
        doc="For the extractor bytes: how many bytes a record holds.",
    )

    def check(self) -> Iterator[Problem]:
        """Override it for rules of your own, and go on with these."""
        yield from ()
