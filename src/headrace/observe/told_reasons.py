"""A long reason is told once: a connector fails with the words of its task, which stand above."""

from __future__ import annotations

from dataclasses import replace

from headrace.observe.events import ConnectorFailed, Event, TaskFailed


class ToldReasons:
    """Remembers why tasks failed until their connector has failed, too. One per listener."""

    def __init__(self) -> None:
        self._reasons: dict[str, list[str]] = {}

    def shortened(self, event: Event) -> Event:
        """*event*, without a reason that one of the connector's tasks was given before."""
        if isinstance(event, TaskFailed) and event.reason:
            self._reasons.setdefault(event.connector, []).append(event.reason)
        if not isinstance(event, ConnectorFailed):
            return event
        for told in self._reasons.pop(event.connector, []):
            if event.reason.endswith(f": {told}"):
                return replace(
                    event, reason=f"{event.reason.removesuffix(f': {told}')}, as told above"
                )
        return event
