"""Requests to a worker: their bodies, parsed but not validated, and who sent them."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Final, cast
from urllib.parse import quote

from headrace.herder.answers import TargetState
from headrace.herder.errors import BadRequestError

NOTHING_GIVEN: Final = "Partitions / offsets need to be provided for an alter offsets request"
"""The error of a request to alter offsets that has none."""

REQUEST_SECONDS: Final = 90.0
"""How long Kafka Connect waits for its herder to answer a request."""

MOST_NAME_BYTES: Final = 4096
"""How long a connector's name may be in a URL. It is half of what servers take of a request's line and headers (8 KiB), and
far below what Kafka takes as a transactional id or a record's key."""

MOST_DEPTH: Final = 100
"""How deep JSON that describes a request may be nested; no request needs more than five levels."""

TOO_DEEP: Final = f"nested deeper than {MOST_DEPTH} levels"
"""What is wrong with JSON that is nested deeper; Python's reader may give up on it before it can be measured."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetChange:
    """One element of ``offsets``, as in the JSON.

    The herder validates both: *partition* should be a map, *offset* a map or ``None`` (reset).
    """

    partition: object
    offset: object


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateRequest:
    """``POST /connectors``, with KIP-980's state and KIP-995's offsets.

    *config* holds ``name``; its values are text, or ``None`` where JSON had null. *initial_offsets* is
    ``None`` when the request had none. A *dry_run* creates nothing and answers what would be created.
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
    """``POST /connectors/{name}/offsets/undo``: *change* is a number in the history.

    With *force*, it is undone even if offsets have moved since.
    """

    name: str
    change: int
    force: bool = False
    dry_run: bool = False


def name_too_long(name: str) -> str | None:
    """Why *name* is too long for URLs; ``None`` if it is not. Pure."""
    size = len(quote(name, safe="", errors="replace"))
    if size <= MOST_NAME_BYTES:
        return None
    return (
        f"The name has {size} bytes in a URL; at most {MOST_NAME_BYTES} are allowed. Each byte that is percent-encoded "
        "counts as three. Give the connector a shorter name."
    )


def named(name: str, config: Mapping[str, str | None]) -> dict[str, str | None]:
    """*config* with the connector's *name* in it. Pure.

    Raises ``BadRequestError`` when it has another one, and for a name that is too long for URLs.
    """
    too_long = name_too_long(name)
    if too_long is not None:
        raise BadRequestError(too_long)
    included = config.get("name")
    if included not in (None, name):
        raise BadRequestError(
            f"Connector name configuration ({included}) doesn't match connector name in the URL ({name})"
        )
    return {**config, "name": name}


def is_too_deep(value: object) -> bool:
    """Whether the objects and arrays in *value*, as read from JSON, are nested too deeply. Pure."""
    level = [value]
    for _ in range(MOST_DEPTH + 1):
        level = [inner for each in level for inner in _inner(each)]
        if not level:
            return False
    return True


def _inner(value: object) -> Iterable[object]:
    if isinstance(value, dict):
        return cast("dict[str, object]", value).values()
    return cast("list[object]", value) if isinstance(value, list) else ()


_REQUESTER: ContextVar[str | None] = ContextVar("requester", default=None)


def requester() -> str | None:
    """The user, or the client's address, on whose behalf this thread works; ``None`` for the worker itself."""
    return _REQUESTER.get()


@contextmanager
def on_behalf_of(who: str | None) -> Generator[None]:
    """Work on behalf of *who* in the block; called in the thread that calls the herder."""
    before = _REQUESTER.set(who)
    try:
        yield
    finally:
        _REQUESTER.reset(before)
