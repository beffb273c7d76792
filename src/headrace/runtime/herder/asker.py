"""Who asks for what is being done: told by those who take requests in, kept in the history of offsets."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar

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
