"""``/connectors/{name}/offsets`` (KIP-875), and our extensions: dry runs, lag, history, undo."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from headrace.herder.errors import BadRequestError
from headrace.herder.protocol import Herder
from headrace.herder.requests import NOTHING_GIVEN, OffsetChange, UndoRequest
from headrace.rest import answers as wire
from headrace.rest.bodies import Number, Shape, native, object_body, offset_changes
from headrace.rest.errors import BodyError
from headrace.rest.request import ApiRequest, ApiResponse

_SHAPE: Final = Shape(kind="ConnectorOffsets", fields=("offsets",))
_UNDO: Final = Shape(kind="UndoRequest", fields=("change", "force"))
_DRY_RUN: Final = "dry_run"
_FORM = (
    'offsets must be a list of objects with the fields "partition" and "offset", and no others '
    "(class ConnectorOffset)"
)


class Offsets:
    """Handlers of a connector's offsets; called in worker threads."""

    def __init__(self, herder: Herder) -> None:
        self._herder = herder

    def read(self, request: ApiRequest) -> ApiResponse:
        """``GET …/offsets``."""
        return ApiResponse(content=wire.offsets(self._herder.offsets(request.name)))

    def alter(self, request: ApiRequest) -> ApiResponse:
        """``PATCH …/offsets``."""
        changes = _changes(request.body)
        message = self._herder.alter_offsets(
            request.name, changes, dry_run=request.switch(_DRY_RUN)
        )
        return ApiResponse(content=wire.message(message))

    def reset(self, request: ApiRequest) -> ApiResponse:
        """``DELETE …/offsets``."""
        message = self._herder.reset_offsets(request.name, dry_run=request.switch(_DRY_RUN))
        return ApiResponse(content=wire.message(message))

    def lag(self, request: ApiRequest) -> ApiResponse:
        """``GET …/offsets/lag``."""
        return ApiResponse(content=wire.lag(self._herder.offset_lag(request.name)))

    def history(self, request: ApiRequest) -> ApiResponse:
        """``GET …/offsets/history``."""
        return ApiResponse(content=wire.history(self._herder.offset_history(request.name)))

    def undo(self, request: ApiRequest) -> ApiResponse:
        """``POST …/offsets/undo``."""
        message = self._herder.undo_offsets(_undo_request(request))
        return ApiResponse(content=wire.message(message))


def _changes(body: bytes) -> Sequence[OffsetChange]:
    given = native(object_body(body, _SHAPE).get("offsets"))
    if given is None or given == []:
        raise BadRequestError(NOTHING_GIVEN)
    changes = offset_changes(given) if isinstance(given, list) else None
    if changes is None:
        raise BodyError(_FORM)
    return changes


def _undo_request(request: ApiRequest) -> UndoRequest:
    given = object_body(request.body, _UNDO)
    number = given.get("change")
    change = native(number) if isinstance(number, Number) else None
    if not isinstance(change, int):
        raise BadRequestError("change must be the number of a change in the history of the offsets")
    force = given.get("force", False)
    if not isinstance(force, bool):
        raise BadRequestError("force must be true or false")
    return UndoRequest(
        name=request.name, change=change, force=force, dry_run=request.switch(_DRY_RUN)
    )
