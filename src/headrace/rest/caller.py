"""Who sends a request: the user who logged in, otherwise an address."""

from __future__ import annotations

from typing import Final

from starlette.types import Scope

USER: Final = "headrace.user"
"""Where a request's scope holds the user who logged in."""


def address(scope: Scope) -> str | None:
    """The client's address; one of IPv4 in its own form, also on a socket for both."""
    client: tuple[str, int] | None = scope["client"]
    return client[0].removeprefix("::ffff:") if client else None


def caller(scope: Scope) -> str | None:
    """The user, or the client's address."""
    return scope.get(USER) or address(scope)
