"""``/admin/loggers``: the levels of loggers (KIP-495, KIP-976)."""

from __future__ import annotations

import logging
from typing import Final

from headrace.observe.levels import Levels, LoggerLevel, UnknownLevelError
from headrace.rest import wire
from headrace.rest.asked import Answer, Asked, nothing
from headrace.rest.bodies import config_body
from headrace.rest.errors import BodyError
from headrace.runtime.herder.errors import BadRequestError, NotFoundError

_log = logging.getLogger(__name__)

_CLUSTER: Final = "cluster"
_WORKER: Final = "worker"


class Loggers:
    """Handlers of ``/admin/loggers``; called in worker threads."""

    def __init__(self, levels: Levels) -> None:
        self._levels = levels

    def every(self, _asked: Asked) -> Answer:
        """``GET /admin/loggers``: those with a level of their own, and the root."""
        found = self._levels.every()
        return Answer(content={name: _shown(level) for name, level in found.items()})

    def one(self, asked: Asked) -> Answer:
        """``GET /admin/loggers/{name}``."""
        found = self._levels.of(asked.name)
        if found is None:
            raise NotFoundError(f"Logger {asked.name} not found.")
        return Answer(content=_shown(found))

    def change(self, asked: Asked) -> Answer:
        """``PUT /admin/loggers/{name}``; with ``scope=cluster`` nothing is told of what changed.

        A worker that stands alone is its whole cluster.
        """
        scope = (asked.text("scope") or _WORKER).lower()
        if scope not in {_WORKER, _CLUSTER}:
            _log.warning("Received invalid scope %r; will fall back to default %r", scope, _WORKER)
        word = config_body(asked.body).get("level")
        if word is None:
            raise BadRequestError("Desired 'level' parameter was not specified in request.")
        if not word:
            raise BodyError("Illegal null or empty Level name.")
        try:
            changed = self._levels.change(asked.name, word)
        except UnknownLevelError:
            raise NotFoundError(f"invalid log level '{word}'.") from None
        return nothing() if scope == _CLUSTER else Answer(content=changed)


def _shown(found: LoggerLevel) -> object:
    return wire.level(found.level, found.last_modified_ms)
