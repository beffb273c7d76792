"""``/metrics``: what is measured, for Prometheus."""

from __future__ import annotations

from collections.abc import Callable

from headrace.observe.metrics import CONTENT_TYPE
from headrace.rest.asked import Answer, Asked


class MetricsPage:
    """The handler of ``/metrics``, which Kafka Connect does not have; called in worker threads."""

    def __init__(self, text: Callable[[], str]) -> None:
        self._text = text

    def read(self, _asked: Asked) -> Answer:
        """``GET /metrics``."""
        return Answer(content=self._text(), headers={"Content-Type": CONTENT_TYPE})
