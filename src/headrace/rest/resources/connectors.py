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

_ACCEPTED: Final = 202
_INTEGER = re.compile(r"[+-]?[0-9]+", re.ASCII)
_INT32 = range(-(2**31), 2**31)

_log = logging.getLogger(__name__)

_PLAIN: Final = 200
_CREATED: Final = 201


class Connectors:
    """Handlers of ``/connectors``; called in worker threads."""

    def __init__(self, herder: Herder) -> None:
        self._herder = herder

    def every(self, request: ApiRequest) -> ApiResponse:
        """``GET /connectors``: names, or with ``expand`` the requested information about each of them."""
        expansions = request.query.get("expand")
        if expansions is None:
            return ApiResponse(content=list(self._herder.connectors()))
        lookups = {name: look for name, look in self._lookups().items() if name in expansions}
        for each in expansions:
            if each not in lookups:
                _log.info("Ignoring unknown expansion type %r", each)
        return ApiResponse(content=self._expanded(lookups))

    def create(self, request: ApiRequest) -> ApiResponse:
        """``POST /connectors``; 200 instead of 201 when it came with offsets, as KIP-995 says."""
        creation = create_request(request.body, dry_run=request.switch("dry_run"))
        answer = self._herder.create(creation)
        if creation.dry_run:
            return ApiResponse(content=wire.tried_creation(answer))
        status = _CREATED if answer.offsets_message is None else _PLAIN
        return ApiResponse(
            status=status,
            content=wire.created(answer),
            headers=_location(request, answer.info.name),
        )

    def one(self, request: ApiRequest) -> ApiResponse:
        """``GET /connectors/{name}``."""
        return ApiResponse(content=wire.connector(self._herder.info(request.name)))

    def delete(self, request: ApiRequest) -> ApiResponse:
        """``DELETE /connectors/{name}``."""
        self._herder.delete(request.name)
        return nothing()

    def config(self, request: ApiRequest) -> ApiResponse:
        """``GET /connectors/{name}/config``: as it was submitted."""
        return ApiResponse(content=dict(self._herder.info(request.name).config))

    def put_config(self, request: ApiRequest) -> ApiResponse:
        """``PUT /connectors/{name}/config``; 201 when the connector is new."""
        config = named(request.name, config_body(request.body))
        answer = self._herder.put_config(request.name, config)
        content = wire.created(answer)
        if not answer.is_new:
            return ApiResponse(content=content)
        return ApiResponse(
            status=_CREATED, content=content, headers=_location(request, request.name)
        )

    def patch_config(self, request: ApiRequest) -> ApiResponse:
        """``PATCH /connectors/{name}/config`` (KIP-477)."""
        answer = self._herder.patch_config(request.name, config_body(request.body))
        return ApiResponse(content=wire.created(answer))

    def tasks(self, request: ApiRequest) -> ApiResponse:
        """``GET /connectors/{name}/tasks``."""
        return ApiResponse(content=[wire.task(each) for each in self._herder.tasks(request.name)])

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
                # Deleted since the names were read: it is left out.
                continue
        return shown


def _location(request: ApiRequest, name: str) -> dict[str, str]:
    return {"Location": f"{request.origin}/connectors/{segment(name)}"}


class States:
    """Handlers of states, target states and restarts; called in worker threads."""

    def __init__(self, herder: Herder) -> None:
        self._herder = herder

    def status(self, request: ApiRequest) -> ApiResponse:
        """``GET …/status``."""
        return ApiResponse(content=wire.status(self._herder.status(request.name)))

    def task_status(self, request: ApiRequest) -> ApiResponse:
        """``GET …/tasks/{n}/status``."""
        number = _task(request)
        missing = NotFoundError(f"No status found for task {request.name}-{number}")
        try:
            tasks = self._herder.status(request.name).tasks
        except NotFoundError:
            raise missing from None
        found = next((each for each in tasks if each.task == number), None)
        if found is None:
            raise missing
        return ApiResponse(content=wire.state_info(found))

    def pause(self, request: ApiRequest) -> ApiResponse:
        """``PUT …/pause``."""
        self._herder.pause(request.name)
        return nothing(_ACCEPTED)

    def resume(self, request: ApiRequest) -> ApiResponse:
        """``PUT …/resume``."""
        self._herder.resume(request.name)
        return nothing(_ACCEPTED)

    def stop(self, request: ApiRequest) -> ApiResponse:
        """``PUT …/stop`` (KIP-875)."""
        self._herder.stop(request.name)
        return nothing()

    def restart(self, request: ApiRequest) -> ApiResponse:
        """``POST …/restart``; with flags (KIP-745) 202 and the status of what is restarted."""
        plan = self._herder.restart(
            RestartRequest(
                name=request.name,
                include_tasks=request.flag("includeTasks"),
                only_failed=request.flag("onlyFailed"),
            )
        )
        return (
            nothing() if plan is None else ApiResponse(status=_ACCEPTED, content=wire.status(plan))
        )

    def restart_task(self, request: ApiRequest) -> ApiResponse:
        """``POST …/tasks/{n}/restart``."""
        self._herder.restart_task(request.name, _task(request))
        return nothing()


def _task(request: ApiRequest) -> int:
    text = request.names[1]
    # Longer ones are out of range, and Python refuses to read very long ones.
    if not _INTEGER.fullmatch(text[:20]) or len(text) > 20 or int(text) not in _INT32:  # noqa: PLR2004
        raise HttpError(404)
    return int(text)


class Topics:
    """Handlers of a connector's topics; called in worker threads."""

    def __init__(self, herder: Herder) -> None:
        self._herder = herder

    def read(self, request: ApiRequest) -> ApiResponse:
        """``GET …/topics``."""
        return ApiResponse(content=wire.topics(request.name, self._herder.topics(request.name)))

    def reset(self, request: ApiRequest) -> ApiResponse:
        """``PUT …/topics/reset``."""
        self._herder.reset_topics(request.name)
        return nothing(_ACCEPTED)
