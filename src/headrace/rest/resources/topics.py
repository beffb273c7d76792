"""``/connectors/{name}/topics``: which topics a connector has written to (KIP-558)."""

from __future__ import annotations

from typing import Final

from headrace.rest import wire
from headrace.rest.asked import Answer, Asked, nothing
from headrace.runtime.herder.herder import Herder

_ACCEPTED: Final = 202


class Topics:
    """Handlers of a connector's topics; called in worker threads."""

    def __init__(self, herder: Herder) -> None:
        self._herder = herder

    def read(self, asked: Asked) -> Answer:
        """``GET …/topics``."""
        return Answer(content=wire.topics(asked.name, self._herder.topics(asked.name)))

    def reset(self, asked: Asked) -> Answer:
        """``PUT …/topics/reset``."""
        self._herder.reset_topics(asked.name)
        return nothing(_ACCEPTED)
