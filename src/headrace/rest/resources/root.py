"""``/`` and ``/health``: who this worker is, and how."""

from __future__ import annotations

from headrace.rest import wire
from headrace.rest.asked import Answer, Asked
from headrace.runtime.herder.answers import Health
from headrace.runtime.herder.herder import Herder

_STATUS = {Health.HEALTHY: 200, Health.STARTING: 503, Health.UNHEALTHY: 500}


class Root:
    """Handlers of ``/`` and ``/health``; called in worker threads."""

    def __init__(self, herder: Herder) -> None:
        self._herder = herder

    def server(self, _asked: Asked) -> Answer:
        """``GET /``."""
        return Answer(content=wire.server(self._herder.server()))

    def health(self, _asked: Asked) -> Answer:
        """``GET /health`` (KIP-1017)."""
        found = self._herder.health()
        return Answer(status=_STATUS[found.status], content=wire.health(found))
