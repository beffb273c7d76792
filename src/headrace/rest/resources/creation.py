"""The body of ``POST /connectors``, with KIP-980's state and KIP-995's offsets."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, cast

from headrace.connect.setting_type import trimmed_as_java
from headrace.rest.bodies import Shape, config_map, native, object_body, text_of
from headrace.rest.errors import BodyError
from headrace.runtime.herder.errors import BadRequestError
from headrace.runtime.herder.requests import CreateRequest, OffsetChange, named
from headrace.runtime.herder.states import TargetState

SHAPE: Final = Shape(
    kind="CreateConnectorRequest", fields=("config", "initial_offsets", "initial_state", "name")
)

_PRESET: Final = ("partition", "offset")
_FORM = (
    "initial_offsets must be a list, not empty, of objects with a partition, which is an object, and "
    "an offset, which is an object or null"
)


def create_request(body: bytes, *, dry_run: bool = False) -> CreateRequest:
    """What *body* asks for; raises ``BodyError`` (500) and ``BadRequestError`` (400) as Kafka Connect does."""
    members = object_body(body, SHAPE)
    name = trimmed_as_java(text_of(members.get("name"), '["name"]') or "")
    config = config_map(members.get("config"))
    state = _state(text_of(members.get("initial_state"), '["initial_state"]'))
    return CreateRequest(
        name=name,
        config=named(name, config),
        initial_state=state,
        initial_offsets=_initial_offsets(native(members.get("initial_offsets"))),
        dry_run=dry_run,
    )


def offset_changes(value: object) -> list[OffsetChange] | None:
    """The elements of ``offsets``; ``None`` when one of them is no object with just these two fields."""
    changes = list[OffsetChange]()
    for each in cast("Sequence[object]", value):
        if not isinstance(each, dict) or not each.keys() <= {"partition", "offset"}:
            return None
        members = cast("dict[str, object]", each)
        changes.append(
            OffsetChange(partition=members.get("partition"), offset=members.get("offset"))
        )
    return changes


def _state(word: str | None) -> TargetState:
    if word is None:
        return TargetState.RUNNING
    try:
        return TargetState(word.upper())
    except ValueError:
        known = ", ".join(TargetState)
        raise BodyError(
            f"Cannot construct instance of InitialState, problem: {word} is none of {known}"
        ) from None


def _initial_offsets(value: object) -> list[OffsetChange] | None:
    if value is None:
        return None
    given = cast("list[object]", value) if isinstance(value, list) else []
    if not given or not all(_is_preset(each) for each in given):
        raise BadRequestError(_FORM)
    return offset_changes(given)


def _is_preset(element: object) -> bool:
    # An offset that was forgotten is not one that is null: it would create the connector without.
    match element:
        case {"partition": dict(), "offset": dict() | None}:
            return len(cast("dict[str, object]", element)) == len(_PRESET)
        case _:
            return False
