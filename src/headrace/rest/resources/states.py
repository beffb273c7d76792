"""``/connectors/{name}/status``, ``pause``, ``resume``, ``stop``, ``restart``, and the same of tasks."""

from __future__ import annotations

import re
from typing import Final

from headrace.rest import wire
from headrace.rest.asked import Answer, Asked, nothing
from headrace.rest.errors import HttpError
from headrace.runtime.herder.errors import NotFoundError
from headrace.runtime.herder.herder import Herder
from headrace.runtime.herder.requests import RestartRequest

_ACCEPTED: Final = 202
_INTEGER = re.compile(r"[+-]?[0-9]+", re.ASCII)
_INT32 = range(-(2**31), 2**31)


class States:
    """Handlers of what connectors and tasks are and shall be; called in worker threads."""

    def __init__(self, herder: Herder) -> None:
        self._herder = herder

    def status(self, asked: Asked) -> Answer:
        """``GET …/status``."""
        return Answer(content=wire.status(self._herder.status(asked.name)))

    def task_status(self, asked: Asked) -> Answer:
        """``GET …/tasks/{n}/status``."""
        number = _task(asked)
        missing = NotFoundError(f"No status found for task {asked.name}-{number}")
        try:
            tasks = self._herder.status(asked.name).tasks
        except NotFoundError:
            raise missing from None
        found = next((each for each in tasks if each.task == number), None)
        if found is None:
            raise missing
        return Answer(content=wire.standing(found))

    def pause(self, asked: Asked) -> Answer:
        """``PUT …/pause``."""
        self._herder.pause(asked.name)
        return nothing(_ACCEPTED)

    def resume(self, asked: Asked) -> Answer:
        """``PUT …/resume``."""
        self._herder.resume(asked.name)
        return nothing(_ACCEPTED)

    def stop(self, asked: Asked) -> Answer:
        """``PUT …/stop`` (KIP-875)."""
        self._herder.stop(asked.name)
        return nothing()

    def restart(self, asked: Asked) -> Answer:
        """``POST …/restart``; with flags (KIP-745) 202 and what will be restarted."""
        plan = self._herder.restart(
            RestartRequest(
                name=asked.name,
                include_tasks=asked.flag("includeTasks"),
                only_failed=asked.flag("onlyFailed"),
            )
        )
        return nothing() if plan is None else Answer(status=_ACCEPTED, content=wire.status(plan))

    def restart_task(self, asked: Asked) -> Answer:
        """``POST …/tasks/{n}/restart``."""
        self._herder.restart_task(asked.name, _task(asked))
        return nothing()


def _task(asked: Asked) -> int:
    text = asked.names[1]
    # Longer ones are out of range, and Python refuses to read very long ones.
    if not _INTEGER.fullmatch(text[:20]) or len(text) > 20 or int(text) not in _INT32:  # noqa: PLR2004
        raise HttpError(404)
    return int(text)
