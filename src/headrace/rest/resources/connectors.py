"""``/connectors``: their configurations, states, tasks and topics."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Mapping
from typing import Final

from headrace.herder.errors import NotFoundError
from headrace.herder.protocol import Herder
from headrace.herder.requests import RestartRequest, named
from headrace.rest import answers as wire
from headrace.rest.bodies import config_body, create_request
from headrace.rest.errors import HttpError
from headrace.rest.request import ApiRequest, ApiResponse, nothing, segment

_log = logging.getLogger(__name__)

_PLAIN: Final = 200
_CREATED: Final = 201


class Connectors:
    """Handlers of ``/connectors``; called in worker threads."""

    def __init__(self, herder: Herder) -> None:
        self._herder = herder

    def every(self, asked: ApiRequest) -> ApiResponse:
        """``GET /connectors``: names, or with ``expand`` what is asked for about each of them."""
        expansions = asked.query.get("expand")
        if expansions is None:
            return ApiResponse(content=list(self._herder.connectors()))
        lookups = {name: look for name, look in self._lookups().items() if name in expansions}
        for each in expansions:
            if each not in lookups:
                _log.info("Ignoring unknown expansion type %r", each)
        return ApiResponse(content=self._expanded(lookups))

    def create(self, asked: ApiRequest) -> ApiResponse:
        """``POST /connectors``; 200 instead of 201 when it came with offsets, as KIP-995 says."""
        request = create_request(asked.body, dry_run=asked.switch("dry_run"))
        answer = self._herder.create(request)
        if request.dry_run:
            return ApiResponse(content=wire.tried_creation(answer))
        status = _CREATED if answer.offsets_message is None else _PLAIN
        return ApiResponse(
            status=status,
            content=wire.created(answer),
            headers=_location(asked, answer.info.name),
        )

    def one(self, asked: ApiRequest) -> ApiResponse:
        """``GET /connectors/{name}``."""
        return ApiResponse(content=wire.connector(self._herder.info(asked.name)))

    def delete(self, asked: ApiRequest) -> ApiResponse:
        """``DELETE /connectors/{name}``."""
        self._herder.delete(asked.name)
        return nothing()

    def config(self, asked: ApiRequest) -> ApiResponse:
        """``GET /connectors/{name}/config``: as it was submitted."""
        return ApiResponse(content=dict(self._herder.info(asked.name).config))

    def put_config(self, asked: ApiRequest) -> ApiResponse:
        """``PUT /connectors/{name}/config``; 201 when the connector is new."""
        config = named(asked.name, config_body(asked.body))
        answer = self._herder.put_config(asked.name, config)
        content = wire.created(answer)
        if not answer.is_new:
            return ApiResponse(content=content)
        return ApiResponse(status=_CREATED, content=content, headers=_location(asked, asked.name))

    def patch_config(self, asked: ApiRequest) -> ApiResponse:
        """``PATCH /connectors/{name}/config`` (KIP-477)."""
        answer = self._herder.patch_config(asked.name, config_body(asked.body))
        return ApiResponse(content=wire.created(answer))

    def tasks(self, asked: ApiRequest) -> ApiResponse:
        """``GET /connectors/{name}/tasks``."""
        return ApiResponse(content=[wire.task(each) for each in self._herder.tasks(asked.name)])

    def _lookups(self) -> Mapping[str, Callable[[str], wire.Json]]:
        return {
            "info": lambda name: wire.connector(self._herder.info(name)),
            "status": lambda name: wire.status(self._herder.status(name)),
        }

    def _expanded(self, lookups: Mapping[str, Callable[[str], wire.Json]]) -> wire.Json:
        shown: wire.Json = {}
        for name in self._herder.connectors():
            try:
                shown[name] = {word: look(name) for word, look in lookups.items()}
            except NotFoundError:
                # Deleted since the names were read: it is left out, as if it had been before.
                continue
        return shown


def _location(asked: ApiRequest, name: str) -> dict[str, str]:
    return {"Location": f"{asked.origin}/connectors/{segment(name)}"}


_ACCEPTED: Final = 202
_INTEGER = re.compile(r"[+-]?[0-9]+", re.ASCII)
_INT32 = range(-(2**31), 2**31)


class States:
    """Handlers of what connectors and tasks are and shall be; called in worker threads."""

    def __init__(self, herder: Herder) -> None:
        self._herder = herder

    def status(self, asked: ApiRequest) -> ApiResponse:
        """``GET …/status``."""
        return ApiResponse(content=wire.status(self._herder.status(asked.name)))

    def task_status(self, asked: ApiRequest) -> ApiResponse:
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
        return ApiResponse(content=wire.standing(found))

    def pause(self, asked: ApiRequest) -> ApiResponse:
        """``PUT …/pause``."""
        self._herder.pause(asked.name)
        return nothing(_ACCEPTED)

    def resume(self, asked: ApiRequest) -> ApiResponse:
        """``PUT …/resume``."""
        self._herder.resume(asked.name)
        return nothing(_ACCEPTED)

    def stop(self, asked: ApiRequest) -> ApiResponse:
        """``PUT …/stop`` (KIP-875)."""
        self._herder.stop(asked.name)
        return nothing()

    def restart(self, asked: ApiRequest) -> ApiResponse:
        """``POST …/restart``; with flags (KIP-745) 202 and what will be restarted."""
        plan = self._herder.restart(
            RestartRequest(
                name=asked.name,
                include_tasks=asked.flag("includeTasks"),
                only_failed=asked.flag("onlyFailed"),
            )
        )
        return (
            nothing() if plan is None else ApiResponse(status=_ACCEPTED, content=wire.status(plan))
        )

    def restart_task(self, asked: ApiRequest) -> ApiResponse:
        """``POST …/tasks/{n}/restart``."""
        self._herder.restart_task(asked.name, _task(asked))
        return nothing()


def _task(asked: ApiRequest) -> int:
    text = asked.names[1]
    # Longer ones are out of range, and Python refuses to read very long ones.
    if not _INTEGER.fullmatch(text[:20]) or len(text) > 20 or int(text) not in _INT32:  # noqa: PLR2004
        raise HttpError(404)
    return int(text)


class Topics:
    """Handlers of a connector's topics; called in worker threads."""

    def __init__(self, herder: Herder) -> None:
        self._herder = herder

    def read(self, asked: ApiRequest) -> ApiResponse:
        """``GET …/topics``."""
        return ApiResponse(content=wire.topics(asked.name, self._herder.topics(asked.name)))

    def reset(self, asked: ApiRequest) -> ApiResponse:
        """``PUT …/topics/reset``."""
        self._herder.reset_topics(asked.name)
        return nothing(_ACCEPTED)
