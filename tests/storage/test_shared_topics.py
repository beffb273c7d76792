"""Threads that write to and read from shared topics at the same time."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextlib import closing

import pytest

from headrace.connect.errors import RetriableError
from headrace.kafka.client_config import producer_config
from headrace.storage.kafka import SharedTopics

SECONDS = 0.3
CALLS: list[Callable[[SharedTopics], None]] = [
    lambda topics: topics.refresh(),
    lambda topics: topics.write(("t", [(b"k", b"v")])),
    lambda topics: topics.change(list),
]


@pytest.mark.parametrize("call", CALLS, ids=["refresh", "write", "change"])
def test_no_call_waits_longer_for_another_thread_than_it_may_take(
    call: Callable[[SharedTopics], None],
) -> None:
    """The other one does not end by itself."""
    writes, may_end = threading.Event(), threading.Event()

    def may_write() -> None:
        if threading.current_thread() is slow:
            writes.set()
            may_end.wait(30)
            raise RetriableError("It is over.")

    def write_slowly() -> None:
        with pytest.raises(RetriableError, match="over"):
            topics.write(("t", [(b"k", b"v")]))

    slow = threading.Thread(target=write_slowly)
    topics = SharedTopics(
        producer_config({"bootstrap.servers": "127.0.0.1:1"}),
        what="statuses",
        may_write=may_write,
        seconds=SECONDS,
    )
    with closing(topics):
        slow.start()
        assert writes.wait(30)
        began = time.monotonic()
        with pytest.raises(RetriableError, match="Earlier reads and writes of statuses"):
            call(topics)
        assert SECONDS <= time.monotonic() - began < 10

        assert slow.is_alive()
        may_end.set()
        slow.join(30)
