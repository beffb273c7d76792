"""Where requests wait for what comes with Kafka."""

from __future__ import annotations

import threading

from headrace.runtime.herder.errors import ServerError
from headrace.runtime.standalone.parts import KafkaParts

# Shorter than REST waits for an answer, so that the sentence is this one.
_WAIT_SECONDS = 60.0


class KafkaGate:
    """Opened once, or told that it never will be. Any thread may call."""

    def __init__(self, *, wait_seconds: float = _WAIT_SECONDS) -> None:
        self._wait_seconds = wait_seconds
        self._settled = threading.Event()
        self._kafka: KafkaParts | None = None
        self._failure: Exception | None = None

    def open(self, kafka: KafkaParts) -> None:
        """Let everybody through."""
        self._kafka = kafka
        self._settled.set()

    def refuse(self, failure: Exception) -> None:
        """Say why nobody will ever be let through."""
        self._failure = failure
        self._settled.set()

    @property
    def failure(self) -> Exception | None:
        """Why the gate stays shut."""
        return self._failure

    def peek(self) -> KafkaParts | None:
        """What is behind the gate, if it is open."""
        return self._kafka

    def kafka(self) -> KafkaParts:
        """What is behind the gate; waits a minute for it.

        Raises :class:`~headrace.runtime.herder.errors.ServerError` when it does not open.
        """
        self._settled.wait(self._wait_seconds)
        if self._kafka is None:
            if isinstance(self._failure, ServerError):
                raise ServerError(str(self._failure))
            why = self._failure or "Kafka is not reached yet. Try again when it is."
            raise ServerError(f"The worker is still starting up: {why}")
        return self._kafka
