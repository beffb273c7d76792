"""Requests between workers of a group: those of Kafka Connect (KIP-507, KIP-618), and one of our own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, cast

from headrace.herder.errors import BadRequestError
from headrace.herder.protocol import Herder
from headrace.rest.bodies import Shape, config_map, json_body, native, object_body
from headrace.rest.errors import BodyError
from headrace.rest.request import ApiRequest, ApiResponse, nothing

_COUNT: Final = "task-count"
_ACTION: Final = ("worker", "action", "stay")


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

    def act(self, request: ApiRequest) -> ApiResponse:
        """``PUT /workers``: a worker is to hand its connectors over, or to take some again; where ``admin.listeners`` has taken who asks."""
        self._verify(request)
        if request.signature is None:
            # Where the group signs nothing, anyone could have a worker end.
            raise BadRequestError("Only a worker of the group can ask this, with its signature.")
        given = object_body(request.body, Shape(kind="WorkerAction", fields=_ACTION))
        worker, stay = given.get("worker"), given.get("stay", False)
        if not isinstance(worker, str) or not isinstance(stay, bool):
            raise BodyError("The worker is no text, or stay neither true nor false")
        if given.get("action") == "relinquish":
            self._herder.relinquish(worker, stay=stay)
        elif given.get("action") == "rejoin":
            self._herder.rejoin(worker)
        else:
            raise BodyError("The action is neither relinquish nor rejoin")
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
