"""The client library's log lines, in ``logging``, and the errors that it reports outside of calls."""

from __future__ import annotations

import logging
import re
import threading
import time
from typing import Final

from confluent_kafka import KafkaError

from headrace.kafka.deadline import Clock

_INTERVAL_SECONDS = 60.0
# Logged repeatedly for each connection of each client that failed or was lost.
_CONNECTION = frozenset({"FAIL", "ERROR", "REQTMOUT"})
# The client retries these by itself; a lasting failure is an error of the call that waits for it.
_RETRIED = frozenset({"GETPID"})


class ClientLog:
    """Takes the client's lines as a ``logging.Logger`` would; the ``logger`` setting of every client.

    Of lines about connections, the first is a warning, and then at most one a minute, with the number of
    lines suppressed in between; the others are logged at DEBUG, like those about requests that a healthy
    client retries. All clients of a process share one, and any thread may call.
    """

    def __init__(self, logger: logging.Logger, *, clock: Clock = time.monotonic) -> None:
        self._logger = logger
        self._clock = clock
        self._lock = threading.Lock()
        self._logged_at: float | None = None
        self._suppressed = 0

    def log(self, level: int, template: str, facility: str, *rest: object) -> None:
        """Take one line; the client calls it with its *facility*, its name and its text."""
        if facility in _CONNECTION:
            self._connection(level, template, facility, *rest)
        elif facility in _RETRIED and level <= logging.WARNING:
            self._logger.debug(template, facility, *rest)
        else:
            self._logger.log(level, template, facility, *rest)

    def _connection(self, level: int, template: str, *words: object) -> None:
        # Below WARNING it is an idle connection that the broker has closed.
        before = self._suppressed_before(self._clock()) if level >= logging.WARNING else None
        if before is None:
            self._logger.debug(template, *words)
        elif before:
            more = f"{template} (and %d more lines about connections in between)"
            self._logger.warning(more, *words, before)
        else:
            self._logger.warning(template, *words)

    def _suppressed_before(self, now: float) -> int | None:
        """How many lines were suppressed before this one; ``None`` when this one is to be suppressed, too."""
        with self._lock:
            if self._logged_at is not None and now < self._logged_at + _INTERVAL_SECONDS:
                self._suppressed += 1
                return None
            suppressed, self._suppressed, self._logged_at = self._suppressed, 0, now
            return suppressed


CLIENT_LOG: Final = ClientLog(logging.getLogger("headrace.kafka.client"))

_MOMENT = re.compile(r" \(after \d+ms in state .*\)")
# "host:port/bootstrap: " before a sentence that repeats the address.
_BOOTSTRAP = re.compile(r"^\S+/bootstrap: ")

_SUMMARY = "_ALL_BROKERS_DOWN"
_AWAY = ("_TRANSPORT", _SUMMARY, "_RESOLVE")


class LastClientError:
    """A client's ``error_cb`` that keeps the last error in *text*; ``None`` before the first one.

    Called inside the client's own calls, so on the thread that polls it.
    """

    def __init__(self) -> None:
        self.text: str | None = None
        self.is_summary = False
        """Whether *text* only says that brokers are down, and not why."""
        self.was_away = False
        """Whether a broker could not be reached, or a connection was lost, at some time."""

    def __call__(self, error: KafkaError) -> None:
        """Keep *error*, unless it only summarises earlier ones."""
        self.was_away |= error.name() in _AWAY
        # That all brokers are down says less than the error before it, which has the cause. So does that a peer has closed a connection
        # which was to have TLS: the same attempt is also told with the advice that there may be none.
        is_summary = error.name() == _SUMMARY
        text = _BOOTSTRAP.sub("", _MOMENT.sub("", error.str()))
        if self.text is None or not (is_summary or text in self.text):
            self.text, self.is_summary = text, is_summary

    def explain(self, reason: str) -> None:
        """Keep *reason*, which was found otherwise, where the client has not said why it does not reach a broker."""
        if self.text is None or self.is_summary:
            self.text, self.is_summary = reason, False

    def forget(self) -> None:
        """Drop the last error."""
        self.text = None
