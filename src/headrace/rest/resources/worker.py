"""Resources of the worker: ``/``, ``/health``, ``/metrics``, ``/connector-plugins``, ``/admin/…``, ``/openapi.json``."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Sequence
from importlib.resources import files
from typing import Final

from headrace.herder.answers import Health, PluginKind, WorkerInfo
from headrace.herder.errors import BadRequestError, ConflictError, ElsewhereError, NotFoundError
from headrace.herder.protocol import Herder
from headrace.observe.log_levels import Levels, LoggerLevel, UnknownLevelError, level_of
from headrace.observe.metrics import CONTENT_TYPE
from headrace.rest import answers as wire
from headrace.rest.bodies import config_body
from headrace.rest.errors import BodyError
from headrace.rest.forwarding import Forwarding
from headrace.rest.request import ApiRequest, ApiResponse, nothing

_log = logging.getLogger(__name__)

_STATUS = {Health.HEALTHY: 200, Health.STARTING: 503, Health.UNHEALTHY: 500}


class Root:
    """Handlers of ``/`` and ``/health``; called in worker threads."""

    def __init__(self, herder: Herder) -> None:
        self._herder = herder

    def server(self, _request: ApiRequest) -> ApiResponse:
        """``GET /``."""
        return ApiResponse(content=wire.server(self._herder.server()))

    def health(self, _request: ApiRequest) -> ApiResponse:
        """``GET /health`` (KIP-1017)."""
        found = self._herder.health()
        return ApiResponse(status=_STATUS[found.status], content=wire.health(found))


class Plugins:
    """Handlers of ``/connector-plugins``; called in worker threads."""

    def __init__(self, herder: Herder) -> None:
        self._herder = herder

    def every(self, request: ApiRequest) -> ApiResponse:
        """``GET /connector-plugins``: only connectors unless ``connectorsOnly=false`` (KIP-769)."""
        found = self._herder.plugins()
        if request.flag("connectorsOnly", default=True):
            found = [each for each in found if each.kind is PluginKind.SOURCE]
        return ApiResponse(content=[wire.plugin(each) for each in found])

    def settings(self, request: ApiRequest) -> ApiResponse:
        """``GET /connector-plugins/{plugin}/config``."""
        found = self._herder.plugin_settings(request.name, request.text("version"))
        return ApiResponse(content=[wire.key(each) for each in found])

    def validate(self, request: ApiRequest) -> ApiResponse:
        """``PUT /connector-plugins/{plugin}/config/validate``."""
        found = self._herder.validate(request.name, config_body(request.body))
        return ApiResponse(content=wire.config_infos(found))


_CLUSTER: Final = "cluster"
_WORKER: Final = "worker"


class Loggers:
    """Handlers of ``/admin/loggers``; called in worker threads."""

    def __init__(self, levels: Levels, herder: Herder) -> None:
        self._levels = levels
        self._herder = herder

    def every(self, _request: ApiRequest) -> ApiResponse:
        """``GET /admin/loggers``: those with a level of their own, and the root."""
        found = self._levels.every()
        return ApiResponse(content={name: _shown(level) for name, level in found.items()})

    def one(self, request: ApiRequest) -> ApiResponse:
        """``GET /admin/loggers/{name}``."""
        found = self._levels.of(request.name)
        if found is None:
            raise NotFoundError(f"Logger {request.name} not found.")
        return ApiResponse(content=_shown(found))

    def change(self, request: ApiRequest) -> ApiResponse:
        """``PUT /admin/loggers/{name}``; with ``scope=cluster`` the answer has no body (KIP-976).

        A standalone worker is its whole cluster. One of a group sets the level when it reads of it, as the others do: so the last of several
        requests counts on all of them.
        """
        scope = (request.text("scope") or _WORKER).lower()
        if scope not in {_WORKER, _CLUSTER}:
            _log.warning("Received invalid scope %r; will fall back to default %r", scope, _WORKER)
        word = config_body(request.body).get("level")
        if word is None:
            raise BadRequestError("Desired 'level' parameter was not specified in request.")
        if not word:
            raise BodyError("Illegal null or empty Level name.")
        try:
            level_of(word)
        except UnknownLevelError:
            raise NotFoundError(f"invalid log level '{word}'.") from None
        if scope == _CLUSTER and self._herder.share_level(request.name, word):
            return nothing()
        changed = self._levels.change(request.name, word)
        return nothing() if scope == _CLUSTER else ApiResponse(content=changed)


def _shown(found: LoggerLevel) -> object:
    return wire.level(found.level, found.last_modified_ms)


_ACCEPTED: Final = 202
# It answers from memory. One that is frozen still takes connections, and `headrace workers` waits ten seconds for the list.
_LEADER_SECONDS: Final = 3.0


class Workers:
    """Handlers of ``/admin/workers``, which Kafka Connect does not have; called in worker threads.

    Requests that another worker has to answer are sent on to its listeners. With *apart* they cannot be, as the workers have
    ``admin.listeners`` for them, whose addresses no other worker knows: this worker then asks that one itself, and lists what the brokers
    know.
    """

    def __init__(self, herder: Herder, forwarding: Forwarding, *, apart: bool) -> None:
        self._herder = herder
        self._forwarding = forwarding
        self._apart = apart

    def every(self, request: ApiRequest) -> ApiResponse:
        """``GET /admin/workers``: also while the leader does not answer, before the group has missed it."""
        unreachable = None
        try:
            return _listed(self._herder.workers())
        except ElsewhereError as leader:
            if not self._apart:
                try:
                    return self._forwarding.answered(request, leader, seconds=_LEADER_SECONDS)
                except ConflictError as error:
                    _log.warning("%s", error)
                    unreachable = leader.url
        return _listed(self._herder.known_workers(unreachable=unreachable))

    def relinquish(self, request: ApiRequest) -> ApiResponse:
        """``PUT /admin/workers/{id}/relinquish`` (KIP-995)."""
        stay = request.switch("stay")
        self._herder.relinquish(request.name, stay=stay, signed=self._apart)
        return nothing(_ACCEPTED)

    def rejoin(self, request: ApiRequest) -> ApiResponse:
        """``PUT /admin/workers/{id}/rejoin``."""
        self._herder.rejoin(request.name, signed=self._apart)
        return nothing(_ACCEPTED)


def _listed(found: Sequence[WorkerInfo]) -> ApiResponse:
    return ApiResponse(content=[wire.worker(each) for each in found])


class MetricsPage:
    """The handler of ``/metrics``, which Kafka Connect does not have; called in worker threads."""

    def __init__(self, text: Callable[[], str]) -> None:
        self._text = text

    def read(self, _request: ApiRequest) -> ApiResponse:
        """``GET /metrics``."""
        return ApiResponse(content=self._text(), headers={"Content-Type": CONTENT_TYPE})


_FILE: Final = "openapi.json"


class Description:
    """The handler of ``/openapi.json``, which Kafka Connect does not have; called in worker threads."""

    def read(self, _request: ApiRequest) -> ApiResponse:
        """``GET /openapi.json``."""
        text = files("headrace.rest").joinpath(_FILE).read_text("utf-8")
        return ApiResponse(content=json.loads(text))
