"""What a worker is asked: the bodies of requests, read but not yet judged."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from headrace.runtime.herder.errors import BadRequestError
from headrace.runtime.herder.states import TargetState

NOTHING_GIVEN: Final = "Partitions / offsets need to be provided for an alter offsets request"
"""Why a request to alter offsets is refused that has no offsets."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetChange:
    """One element of ``offsets``: what JSON held, whatever it was.

    Both are judged by the herder: *partition* should be a map, *offset* a map or ``None`` (reset).
    """

    partition: object
    offset: object


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateRequest:
    """``POST /connectors``, with KIP-980's state and KIP-995's offsets.

    *config* holds ``name``; its values are text, or ``None`` where JSON had null. *initial_offsets* is
    ``None`` when the request had none. A *dry_run* makes nothing and answers what would be made.
    """

    name: str
    config: Mapping[str, str | None] = field(repr=False)
    initial_state: TargetState = TargetState.RUNNING
    initial_offsets: Sequence[OffsetChange] | None = None
    dry_run: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class RestartRequest:
    """``POST /connectors/{name}/restart`` (KIP-745)."""

    name: str
    include_tasks: bool = False
    only_failed: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class UndoRequest:
    """``POST /connectors/{name}/offsets/undo``: *change* is the number that the history has for it.

    With *force* also when offsets have moved since.
    """

    name: str
    change: int
    force: bool = False
    dry_run: bool = False


def named(name: str, config: Mapping[str, str | None]) -> dict[str, str | None]:
    """*config* with the connector's *name* in it; raises ``BadRequestError`` when it has another one. Pure."""
    included = config.get("name")
    if included not in (None, name):
        raise BadRequestError(
            f"Connector name configuration ({included}) doesn't match connector name in the URL ({name})"
        )
    return {**config, "name": name}
