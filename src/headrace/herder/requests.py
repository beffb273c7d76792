"""What a worker is asked: the bodies of requests, read but not yet judged, and who asks."""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import quote

from headrace.herder.answers import TargetState
from headrace.herder.errors import BadRequestError

NOTHING_GIVEN: Final = "Partitions / offsets need to be provided for an alter offsets request"
"""Why a request to alter offsets is refused that has no offsets."""


MOST_NAME_BYTES: Final = 4096
"""How long a connector's name may be in a URL. It is half of what servers take of a request's line and headers (8 KiB), and
far below what Kafka takes as a transactional id or a record's key."""


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


def name_too_long(name: str) -> str | None:
    """Why there could be no request about a connector of that *name*; ``None`` where there can. Pure."""
    size = len(quote(name, safe="", errors="replace"))
    if size <= MOST_NAME_BYTES:
        return None
    return (
        f"The name has {size} bytes in a URL, and {MOST_NAME_BYTES} are the most; a character that is percent-encoded "
        "there has three for each of its bytes. Give the connector a shorter one."
    )


def named(name: str, config: Mapping[str, str | None]) -> dict[str, str | None]:
    """*config* with the connector's *name* in it. Pure.

    Raises ``BadRequestError`` when it has another one, and for a name by which no one could ask for it.
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


_ASKER: ContextVar[str | None] = ContextVar("asker", default=None)


def asker() -> str | None:
    """The user, or the peer's address, for whom this thread works; ``None`` for the worker itself."""
    return _ASKER.get()


@contextmanager
def asked_by(who: str | None) -> Generator[None]:
    """Work for *who* within; called in the thread that calls the herder."""
    before = _ASKER.set(who)
    try:
        yield
    finally:
        _ASKER.reset(before)
