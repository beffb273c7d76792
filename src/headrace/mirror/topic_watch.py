"""Looks at the source while slots copy, and asks for a new plan where one is due: that ends them for a moment."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from functools import partial
from typing import Final

from headrace.connect.errors import RetriableError
from headrace.kafka.deadline import Clock, Deadline
from headrace.kafka.wire.cluster import Cluster
from headrace.mirror.filters import CopiedTopics
from headrace.mirror.planning import Seen
from headrace.mirror.scheduler import connector_thread
from headrace.mirror.settings import PATIENCE_SECONDS
from headrace.mirror.source_logs import topics_of

_log = logging.getLogger(__name__)

# Leaders are elected within seconds; ending all slots costs each of them a moment.
_LEFT_OUT_SECONDS: Final = 30.0
_LONGEST_WAIT: Final = 3600.0


class TopicWatch:
    """A thread with a client of its own.

    It only says that a plan is due; what is done about topics, and what is wrong with them, the plan finds. *seen* is what the
    last plan is about.
    """

    def __init__(
        self,
        cluster: Cluster,
        copied: CopiedTopics,
        seen: Callable[[], Seen],
        *,
        interval_seconds: float | None,
        clock: Clock = time.monotonic,
    ) -> None:
        self._cluster = cluster
        self._copied = copied
        self._seen = seen
        self._interval = interval_seconds
        self._clock = clock
        self._has_failed = False
        self._listed_at = clock()
        self._stopped = threading.Event()

    def start(
        self, name: str, request_plan: Callable[[], None], fail: Callable[[Exception], None]
    ) -> None:
        """Watch from now on, until :meth:`stop`; *request_plan* and *fail* are called by the thread.

        *fail* ends the watch: it is called for whatever no retry can resolve, and for errors that nobody expects.
        """
        connector_thread(f"mirror-{name}", partial(self._run, request_plan, fail)).start()

    def stop(self) -> None:
        """Watch no more; returns at once, a request that is under way ends by itself."""
        self._stopped.set()

    def is_due(self) -> bool:
        """Whether another plan is due. Raises what asking the source raises."""
        seen, now = self._seen(), self._clock()
        if seen.due_at is not None and now >= seen.due_at:
            return True
        if seen.are_left_out and now >= self._listed_at + _LEFT_OUT_SECONDS:
            self._listed_at = now
            return True
        if self._interval is None or now < self._listed_at + self._interval:
            return False
        self._listed_at = now
        answer = self._cluster.metadata(None, Deadline.after(PATIENCE_SECONDS))
        if self._has_failed:
            self._has_failed = False
            _log.info("The source's topics are listed again.")
        # An answer without a single topic is that of a broker that has just started.
        return bool(answer.topics) and topics_of(answer, self._copied) != seen.topics

    def _run(self, request_plan: Callable[[], None], fail: Callable[[Exception], None]) -> None:
        while not self._stopped.wait(self._pause()):
            try:
                if self.is_due():
                    request_plan()
            except RetriableError as error:
                # A cluster that is away is waited for, as it is by those who copy.
                if not self._has_failed:
                    _log.warning(
                        "The source's topics cannot be listed, and new ones are found when they can: %s",
                        error,
                    )
                self._has_failed = True
            except Exception as error:  # noqa: BLE001 (no thread is there to see it, and no plan would be asked for)
                fail(error)
                break
        self._cluster.close()

    def _pause(self) -> float:
        seen, now = self._seen(), self._clock()
        times = [now + _LONGEST_WAIT]
        if self._interval is not None:
            times.append(self._listed_at + self._interval)
        if seen.are_left_out:
            times.append(self._listed_at + _LEFT_OUT_SECONDS)
        if seen.due_at is not None:
            times.append(seen.due_at)
        # A plan that was asked for may be some time in coming.
        return max(0.2, min(times) - now)
