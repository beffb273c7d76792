"""Answers as Kafka Connect writes them: its fields in its order, in its JSON."""

from __future__ import annotations

import base64
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import cast

from headrace.connect.json_document import json_quoted
from headrace.connect.setting import Setting
from headrace.herder.answers import (
    CheckedKey,
    ConfigInfos,
    ConfigValue,
    ConnectorInfo,
    ConnectorOffset,
    ConnectorStatus,
    Created,
    PartitionLag,
    PastChange,
    Plugin,
    ServerInfo,
    StateInfo,
    TaskId,
    TaskInfo,
    WorkerHealth,
    WorkerInfo,
    value_text,
)
from headrace.java.numbers import java_double

Json = dict[str, object]

_NOTHING_CREATED = "Dry run: nothing was created. The configuration is valid."


def server(info: ServerInfo) -> Json:
    """``GET /``."""
    return {
        "version": info.version,
        "commit": info.commit,
        "kafka_cluster_id": info.kafka_cluster_id,
    }


def health(found: WorkerHealth) -> Json:
    """``GET /health``."""
    return {"status": found.status.value, "message": found.message}


def connector(info: ConnectorInfo) -> Json:
    """A connector as it was submitted."""
    return {
        "name": info.name,
        "config": dict(info.config),
        "tasks": [_task_id(each) for each in info.tasks],
        "type": info.type,
    }


def created(answer: Created) -> Json:
    """A connector that was created; KIP-995's field only for a request with offsets."""
    shown = connector(answer.info)
    if answer.offsets_message is not None:
        shown["initial_offsets_response"] = answer.offsets_message
    return shown


def tried_creation(answer: Created) -> Json:
    """A connector that would be created, with a sentence in the same field as other dry runs."""
    return {**created(answer), **message(_NOTHING_CREATED)}


def task(info: TaskInfo) -> Json:
    """A task with its configuration."""
    return {"id": _task_id(info.id), "config": dict(info.config)}


def status(found: ConnectorStatus) -> Json:
    """The states of a connector and its tasks, those by their numbers."""
    return {
        "name": found.name,
        "connector": state_info(found.connector),
        "tasks": [state_info(each) for each in sorted(found.tasks, key=_number)],
        "type": found.type,
    }


def state_info(found: StateInfo) -> Json:
    """One state: ``version`` is always shown, ``trace`` only when there is one."""
    numbered: Json = {} if found.task is None else {"id": found.task}
    shown: Json = {
        **numbered,
        "state": found.state.value,
        "worker_id": found.worker_id,
        "version": found.version,
    }
    if found.trace:
        shown["trace"] = found.trace
    return shown


def topics(name: str, written: Sequence[str]) -> Json:
    """The topics that a connector has written to."""
    return {name: {"topics": list(written)}}


def offsets(found: Iterable[ConnectorOffset]) -> Json:
    """The offsets of a connector."""
    return {
        "offsets": [
            {"partition": dict(each.partition), "offset": dict(each.offset)} for each in found
        ]
    }


def lag(found: Iterable[PartitionLag]) -> Json:
    """The offsets of a connector, with their lag."""
    return {
        "lag": [
            {"partition": dict(each.partition), "offset": dict(each.offset), "lag": each.lag}
            for each in found
        ]
    }


def history(changes: Iterable[PastChange]) -> Json:
    """The changes of a connector's offsets."""
    return {"history": [_past_change(each) for each in changes]}


def message(text: str) -> Json:
    """The answer to a change of offsets: a sentence."""
    return {"message": text}


def plugin(found: Plugin) -> Json:
    """A plugin; ``version`` only when it has one, our ``problem`` only when there is one."""
    shown: Json = {"class": found.class_name, "type": found.kind.value}
    if found.version is not None:
        shown["version"] = found.version
    if found.problem is not None:
        shown["problem"] = found.problem
    return shown


def key(setting: Setting) -> Json:
    """The definition of a key of a configuration."""
    return {
        "name": setting.name,
        "type": setting.type.value,
        "required": setting.required,
        "default_value": None if setting.required else value_text(setting.default, setting.type),
        "importance": setting.importance.upper(),
        "documentation": setting.doc,
        "group": setting.group,
        "order_in_group": setting.order,
        "width": setting.width,
        "display_name": setting.display_name or setting.name,
        "dependents": list(setting.dependents),
    }


def config_infos(found: ConfigInfos) -> Json:
    """The answer of a validation."""
    return {
        "name": found.name,
        "error_count": found.error_count,
        "groups": list(found.groups),
        "configs": [_checked(each) for each in found.configs],
    }


def level(name: str, last_modified_ms: int | None) -> Mapping[str, object]:
    """A logger's level, and when it was last changed through this API."""
    return {"level": name, "last_modified": last_modified_ms}


def worker(found: WorkerInfo) -> Json:
    """A worker of the group."""
    return {
        "id": found.id,
        "url": found.url,
        "version": found.version,
        "slots": found.slots,
        "is_leader": found.is_leader,
        "state": found.state.value,
        "connectors": list(found.connectors),
    }


def _checked(found: CheckedKey) -> Json:
    return {
        "definition": None if found.definition is None else key(found.definition),
        "value": _value(found.value),
    }


def _value(found: ConfigValue) -> Json:
    return {
        "name": found.name,
        "value": found.value,
        "recommended_values": list(found.recommended),
        "errors": list(found.errors),
        "visible": found.visible,
    }


def _past_change(change: PastChange) -> Json:
    return {
        "change": change.id,
        "operation": change.operation,
        "who": change.who,
        "at_ms": change.at_ms,
        "done": change.done,
        "undoes": change.undoes,
        "of_deleted": change.of_deleted,
        "offsets": [
            {
                "partition": dict(each.partition),
                "before": None if each.before is None else dict(each.before),
                "after": None if each.after is None else dict(each.after),
            }
            for each in change.offsets
        ],
    }


def _task_id(task_id: TaskId) -> Json:
    return {"connector": task_id.connector, "task": task_id.task}


def _number(found: StateInfo) -> int:
    return -1 if found.task is None else found.task


def json_bytes(value: object) -> bytes:
    """*value* as JSON in UTF-8. Raises ``TypeError`` for values that JSON cannot represent."""
    # File names may hold bytes that are not text; Python's escape for these is also valid in JSON.
    return "".join(_pieces(value)).encode(errors="backslashreplace")


def _pieces(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield json_quoted(value)
    elif isinstance(value, Mapping):
        yield from _members(cast("Mapping[str, object]", value))
    elif isinstance(value, bytes):
        yield f'"{base64.b64encode(value).decode()}"'
    elif isinstance(value, Sequence):
        yield from _elements(cast("Sequence[object]", value))
    else:
        yield _scalar(value)


def _scalar(value: object) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float):
        # JSON has no such numbers: Java's library writes them as strings.
        return java_double(value) if math.isfinite(value) else f'"{java_double(value)}"'
    raise TypeError(f"JSON cannot represent a value of type {type(value).__name__}.")


def _members(members: Mapping[str, object]) -> Iterator[str]:
    before = "{"
    for name, value in members.items():
        yield f"{before}{json_quoted(name)}:"
        yield from _pieces(value)
        before = ","
    yield "{}" if before == "{" else "}"


def _elements(elements: Sequence[object]) -> Iterator[str]:
    before = "["
    for element in elements:
        yield before
        yield from _pieces(element)
        before = ","
    yield "[]" if before == "[" else "]"
