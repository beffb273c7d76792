"""A request as handlers see it, and what they answer; neither knows of the web framework."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import quote, unquote_to_bytes

from starlette.types import Scope

from headrace.herder.errors import BadRequestError

JSON = "application/json"


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiRequest:
    """A request whose route is known.

    *names* are the variable segments of its path, decoded. *query* holds each parameter with all its
    values. *origin* is the scheme, host and port by which the client reached this worker. *user* is the one
    who logged in, otherwise the client's address.
    """

    names: Sequence[str] = ()
    query: Mapping[str, Sequence[str]] = field(default_factory=dict[str, Sequence[str]])
    body: bytes = field(default=b"", repr=False)
    origin: str = ""
    user: str | None = None

    @property
    def name(self) -> str:
        """The first variable segment: a connector's, plugin's or logger's name."""
        return self.names[0]

    def flag(self, parameter: str, *, default: bool = False) -> bool:
        """A boolean parameter as Java reads it: only ``true`` is true; *default* when it is empty or not there."""
        value = self.text(parameter)
        return value.lower() == "true" if value else default

    def switch(self, parameter: str) -> bool:
        """A boolean parameter of our own, false when it is not there.

        Raises ``BadRequestError`` for a word that is neither: no one means to have a dry run overlooked.
        """
        value = self.text(parameter)
        if value is None or value.lower() == "false":
            return False
        if value.lower() != "true":
            raise BadRequestError(
                f"The parameter {parameter} must be true or false, and is {value}"
            )
        return True

    def text(self, parameter: str) -> str | None:
        """The first value of a parameter, if there is one."""
        values = self.query.get(parameter)
        return values[0] if values else None


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiResponse:
    """What is sent back: *content* becomes JSON, unless the answer *is_empty*."""

    status: int = 200
    content: object = field(default=None, repr=False)
    is_empty: bool = False
    headers: Mapping[str, str] = field(default_factory=dict[str, str])


Handler = Callable[[ApiRequest], ApiResponse]
"""Answers a request, in a worker thread; may block. Raises what ``errors`` knows how to tell."""


def nothing(status: int = 204) -> ApiResponse:
    """An answer without a body."""
    return ApiResponse(status=status, is_empty=True)


USER: Final = "headrace.user"
"""Where a request's scope holds the user who logged in."""


def address(scope: Scope) -> str | None:
    """The client's address; one of IPv4 in its own form, also on a socket for both."""
    client: tuple[str, int] | None = scope["client"]
    return client[0].removeprefix("::ffff:") if client else None


def caller(scope: Scope) -> str | None:
    """The user, or the client's address."""
    return scope.get(USER) or address(scope)


# What RFC 3986 lets stand in a segment besides letters, digits and "-._~".
_STANDS = "!$&'()*+,;=:@"
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_BROKEN = re.compile(r"%(?![0-9a-fA-F]{2})")


class PathError(ValueError):
    """A path that is not percent-encoded UTF-8, or has what no name can have."""


def segments(raw_path: str) -> tuple[str, ...]:
    """The decoded segments of a path as it was sent; a slash at its end does not count.

    An encoded slash (``%2F``) is part of a name. Raises :class:`PathError`, also for two slashes in a row and
    for control characters: Kafka Connect's server refuses both, whatever the path would have been.
    """
    parts = raw_path.removeprefix("/").split("/")
    if parts[-1] == "":
        parts.pop()
    if "" in parts or raw_path.startswith("//"):
        raise PathError("there are two slashes in a row; leave one out")
    return tuple(_decoded(part) for part in parts)


def segment(name: str) -> str:
    """*name* as one segment of a path, safe from those who resolve ``.`` and ``..``."""
    if name in {".", ".."}:
        return name.replace(".", "%2E")
    return quote(name, safe=_STANDS)


def _decoded(part: str) -> str:
    if _BROKEN.search(part):
        raise PathError(f"{part} has a % that is not followed by two hexadecimal digits")
    try:
        decoded = unquote_to_bytes(part).decode()
    except UnicodeDecodeError:
        raise PathError(f"{part} is not percent-encoded UTF-8") from None
    if _CONTROL.search(decoded):
        raise PathError(f"{part} has a control character, which no name may have")
    return decoded
