"""What the client library logs, in ``logging``, and the reasons that it gives of its own accord."""

from __future__ import annotations

import logging
import re
import threading
import time
from typing import Final

from confluent_kafka import KafkaError

from headrace.kafka.deadline import Clock

_EVERY_SECONDS = 60.0
# It says these of each connection of each client that it could not make or has lost, again and again.
_CONNECTION = frozenset({"FAIL", "ERROR", "REQTMOUT"})
# It asks again by itself, and what does not pass comes as an error of the call that waits for it.
_ASKED_AGAIN = frozenset({"GETPID"})


class ClientLog:
    """Takes the client's lines as a ``logging.Logger`` would; the ``logger`` setting of every client.

    Lines about connections: the first is a warning, then at most one a minute is, with the number of those
    between; the others are debug lines, like those about what a healthy client asks again. All clients of
    a process share one, and any thread may call.
    """

    def __init__(self, logger: logging.Logger, *, clock: Clock = time.monotonic) -> None:
        self._logger = logger
        self._clock = clock
        self._lock = threading.Lock()
        self._told_at: float | None = None
        self._untold = 0

    def log(self, level: int, template: str, facility: str, *rest: object) -> None:
        """Take one line; the client calls it with its *facility*, its name and its text."""
        if facility in _CONNECTION:
            self._connection(level, template, facility, *rest)
        elif facility in _ASKED_AGAIN and level <= logging.WARNING:
            self._logger.debug(template, facility, *rest)
        else:
            self._logger.log(level, template, facility, *rest)

    def _connection(self, level: int, template: str, *words: object) -> None:
        # Below a warning it is a connection that the broker has closed because no one used it.
        before = self._before(self._clock()) if level >= logging.WARNING else None
        if before is None:
            self._logger.debug(template, *words)
        elif before:
            more = f"{template} (and %d more lines about connections in between)"
            self._logger.warning(more, *words, before)
        else:
            self._logger.warning(template, *words)

    def _before(self, now: float) -> int | None:
        """How many lines went untold before one that is to be told now; ``None`` when it is not."""
        with self._lock:
            if self._told_at is not None and now < self._told_at + _EVERY_SECONDS:
                self._untold += 1
                return None
            untold, self._untold, self._told_at = self._untold, 0, now
            return untold


CLIENT_LOG: Final = ClientLog(logging.getLogger("headrace.kafka.client"))


_MOMENT = re.compile(r" \(after \d+ms in state .*\)")
# "host:port/bootstrap: " before a sentence that names the address once more.
_BOOTSTRAP = re.compile(r"^\S+/bootstrap: ")

_AWAY = ("_TRANSPORT", "_ALL_BROKERS_DOWN", "_RESOLVE")


class LastClientError:
    """A client's ``error_cb`` that remembers in *text* what was said last; ``None`` before anything was.

    Called inside the client's own calls, so by whoever polls it.
    """

    def __init__(self) -> None:
        self.text: str | None = None
        self.was_away = False
        """Whether a broker could not be reached, or broke off, at some time."""

    def __call__(self, error: KafkaError) -> None:
        """Remember *error*, unless it only sums up what was said before."""
        self.was_away |= error.name() in _AWAY
        # The client says the same outage in changing words; whoever is told wants to hear of it once.
        if self.text is None or error.name() != "_ALL_BROKERS_DOWN":
            self.text = _BOOTSTRAP.sub("", _MOMENT.sub("", error.str()))

    def forget(self) -> None:
        """Nothing counts as said before this."""
        self.text = None
