"""Requests between workers of a group: those of Kafka Connect (KIP-507, KIP-618), and one of our own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, cast

from headrace.herder.protocol import Herder
from headrace.rest.bodies import Shape, config_map, json_body, native, object_body
from headrace.rest.errors import BodyError
from headrace.rest.request import ApiRequest, ApiResponse, nothing

_COUNT: Final = "task-count"


class InternalRequests:
    """Handlers of requests that only workers send; called in worker threads. Nothing is read of a request before its signature is verified."""

    def __init__(self, herder: Herder) -> None:
        self._herder = herder

    def put_tasks(self, request: ApiRequest) -> ApiResponse:
        """``POST …/tasks``: the configurations of a connector's tasks, for the leader to store."""
        self._verify(request)
        configs = _task_configs(json_body(request.body))
        self._herder.put_tasks(request.name, configs, made_from=request.text("config"))
        return nothing()

    def put_task_count(self, request: ApiRequest) -> ApiResponse:
        """``PUT …/fence``: before a generation begins (KIP-618); with the number of its slots, which Kafka Connect's workers do not send."""
        self._verify(request)
        self._herder.put_task_count(request.name, _task_count(request.body))
        return nothing()

    def await_quiet(self, request: ApiRequest) -> ApiResponse:
        """``PUT …/quiet``: answered when nothing of the connector runs on this worker."""
        self._verify(request)
        self._herder.await_quiet(request.name)
        return nothing()

    def _verify(self, request: ApiRequest) -> None:
        self._herder.verify(request.body, request.signature, request.signature_algorithm)


def _task_configs(value: object) -> list[Mapping[str, str]]:
    if not isinstance(value, list):
        raise BodyError("The request has no tasks; send a JSON array of their configurations")
    return [_task_config(number, each) for number, each in enumerate(cast("list[object]", value))]


def _task_config(number: int, value: object) -> Mapping[str, str]:
    config = config_map(value)
    missing = [name for name, each in config.items() if each is None]
    if missing:
        raise BodyError(f"The value of {missing[0]} in the configuration of task {number} is null")
    return cast("Mapping[str, str]", config)


def _task_count(body: bytes) -> int | None:
    if not body:
        return None
    count = native(object_body(body, Shape(kind="TaskCount", fields=(_COUNT,))).get(_COUNT))
    if not isinstance(count, int) or isinstance(count, bool) or count < 0:
        raise BodyError(f"The {_COUNT} is no number of tasks")
    return count
