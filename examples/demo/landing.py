"""Counts what arrives in Kafka while it arrives, as any reader of committed records sees it."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Self

from kafka import KafkaConsumer

_POLL_MS = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Landed:
    """What has arrived so far: *first_at* and *last_at* are moments of the clock."""

    records: int = 0
    bytes: int = 0
    first_at: float = 0.0
    last_at: float = 0.0

    def plus(self, records: int, size: int, now: float) -> Landed:
        """This, and *records* more."""
        return Landed(
            records=self.records + records,
            bytes=self.bytes + size,
            first_at=self.first_at if self.records else now,
            last_at=now,
        )


class Landing:
    """Reads *topics* on a thread of its own, from entering to leaving."""

    def __init__(
        self, bootstrap: str, topics: Iterable[str], *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._clock = clock
        self._consumer = KafkaConsumer(
            bootstrap_servers=bootstrap,
            isolation_level="read_committed",
            auto_offset_reset="earliest",
            enable_auto_commit=False,
            group_id=None,
            # The topics are made by the first record that is sent to them.
            metadata_max_age_ms=500,
            max_poll_records=20_000,
        )
        self._consumer.subscribe(list(topics))
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._read, name="landing", daemon=True)
        self.landed = Landed()
        self.by_topic = Counter[str]()

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.settle()
        self._consumer.close()

    def settle(self) -> None:
        """Count what is there and no more: nothing is being sent any longer."""
        self._ending.set()
        self._thread.join()

    def _read(self) -> None:
        ended = False
        while not ended:
            # One more look after the end, for what was committed just before.
            ended = self._ending.is_set()
            for place, records in self._consumer.poll(timeout_ms=_POLL_MS).items():
                size = sum(len(record.value or b"") for record in records)
                self.landed = self.landed.plus(len(records), size, self._clock())
                self.by_topic[place.topic] += len(records)
