"""What a client says of its own accord: the reasons behind "timed out"."""

from __future__ import annotations

import re

from confluent_kafka import KafkaError

_MOMENT = re.compile(r" \(after \d+ms in state .*\)")
# "host:port/bootstrap: " before a sentence that names the address once more.
_BOOTSTRAP = re.compile(r"^\S+/bootstrap: ")

_AWAY = ("_TRANSPORT", "_ALL_BROKERS_DOWN", "_RESOLVE")


class LastSaid:
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
