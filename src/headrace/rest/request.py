"""Requests and responses as handlers see them: targets, addresses and media types of HTTP."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import quote, unquote_to_bytes, urlencode

from starlette.types import Scope

from headrace.herder.errors import BadRequestError

JSON = "application/json"


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiRequest:
    """A request whose route is known.

    *names* are the variable segments of its path, decoded. *query* holds each parameter with all its
    values. *origin* is the scheme, host and port by which the client reached this worker. *user* is the
    authenticated user, otherwise the client's address. *method*, *path* as it was encoded, and *authorization*, the header, are for
    sending the request on. *signature* and *signature_algorithm* are the headers by which a worker signs a request to another (KIP-507), and
    *requester* the one by which it tells who has asked, to be read where there is no login.
    """

    names: Sequence[str] = ()
    query: Mapping[str, Sequence[str]] = field(default_factory=dict[str, Sequence[str]])
    body: bytes = field(default=b"", repr=False)
    origin: str = ""
    user: str | None = None
    method: str = "GET"
    path: str = ""
    authorization: str | None = field(default=None, repr=False)
    signature: str | None = field(default=None, repr=False)
    signature_algorithm: str | None = None
    requester: str | None = field(default=None, repr=False)

    @property
    def name(self) -> str:
        """The first variable segment: a connector's, plugin's or logger's name."""
        return self.names[0]

    @property
    def as_signed(self) -> bytes:
        """All that is asked for, in a form that no encoding of the request on its way changes."""
        path = "/".join(quote(each, safe="") for each in segments(self.path))
        return f"{self.method} {path}?{self.query_text}\n".encode() + self.body

    @property
    def query_text(self) -> str:
        """The query as it is sent on."""
        return urlencode(self.query, doseq=True)

    def flag(self, parameter: str, *, default: bool = False) -> bool:
        """A boolean parameter as Java reads it: only ``true`` is true; *default* when it is empty or missing."""
        value = self.text(parameter)
        return value.lower() == "true" if value else default

    def switch(self, parameter: str) -> bool:
        """A boolean parameter of our own, false when it is missing.

        Raises ``BadRequestError`` for other values, so that a misspelt dry run does not take effect.
        """
        value = self.text(parameter)
        if value is None or value.lower() == "false":
            return False
        if value.lower() != "true":
            raise BadRequestError(
                f"The parameter {parameter} must be true or false, but is {value}"
            )
        return True

    def text(self, parameter: str) -> str | None:
        """The first value of a parameter, if there is one."""
        values = self.query.get(parameter)
        return values[0] if values else None


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiResponse:
    """A response: *content* becomes JSON, unless the response *is_empty*."""

    status: int = 200
    content: object = field(default=None, repr=False)
    is_empty: bool = False
    headers: Mapping[str, str] = field(default_factory=dict[str, str])


Handler = Callable[[ApiRequest], ApiResponse]
"""Answers a request, in a worker thread; may block. ``errors`` turns exceptions into responses."""


def nothing(status: int = 204) -> ApiResponse:
    """An answer without a body."""
    return ApiResponse(status=status, is_empty=True)


USER: Final = "headrace.user"
"""The key of the authenticated user in a request's scope."""


def address(scope: Scope) -> str | None:
    """The client's address; an IPv4 address in its own notation, also on a dual-stack socket."""
    client: tuple[str, int] | None = scope["client"]
    return client[0].removeprefix("::ffff:") if client else None


def caller(scope: Scope) -> str | None:
    """The user, or the client's address."""
    return scope.get(USER) or address(scope)


_ACCEPTED = frozenset({JSON, "application/*", "*/*"})


def is_json(content_type: str) -> bool:
    """Whether a header ``Content-Type`` names JSON, whatever its parameters."""
    return content_type.partition(";")[0].strip().lower() == JSON


def accepts_json(accept: str | None) -> bool:
    """Whether a header ``Accept`` (``None`` when there is none) allows JSON."""
    if accept is None or not accept.strip():
        return True
    ranges = [_range(each) for each in accept.split(",")]
    given = {media: is_wanted for media, is_wanted in ranges if media in _ACCEPTED}
    # The most specific media range decides.
    return next((given[each] for each in (JSON, "application/*", "*/*") if each in given), False)


def _range(text: str) -> tuple[str, bool]:
    media, *parameters = (part.strip().lower() for part in text.split(";"))
    weight = next((each[2:] for each in parameters if each.startswith("q=")), "1")
    return media, bool(weight.strip("0."))


# What RFC 3986 lets stand in a segment besides letters, digits and "-._~".
_STANDS = "!$&'()*+,;=:@"
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_BROKEN = re.compile(r"%(?![0-9a-fA-F]{2})")


class PathError(ValueError):
    """A path that is not percent-encoded UTF-8, or has characters that are not allowed in names."""


def segments(raw_path: str) -> tuple[str, ...]:
    """The decoded segments of a path; a slash at its end is ignored.

    An encoded slash (``%2F``) is part of a name. Raises :class:`PathError`, also for two slashes in a row and
    for control characters, which Kafka Connect's server refuses in any path.
    """
    parts = raw_path.removeprefix("/").split("/")
    if parts[-1] == "":
        parts.pop()
    if "" in parts or raw_path.startswith("//"):
        raise PathError("there are two slashes in a row; leave one out")
    return tuple(_decoded(part) for part in parts)


def segment(name: str) -> str:
    """*name* as one segment of a path, safe from clients and proxies that resolve ``.`` and ``..``."""
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


_HOST = r"(?:\[[0-9a-fA-F:.]+\]|[0-9a-zA-Z._~%-]+)(?::[0-9]{1,5})?"
_IS_HOST = re.compile(_HOST)
_IS_ABSOLUTE = re.compile(r"https?://", re.IGNORECASE)
_ABSOLUTE = re.compile(rf"(https?://{_HOST})((?:/.*)?)", re.IGNORECASE)


def raw_target(scope: Scope) -> str:
    """The target without its query, not decoded."""
    raw: bytes = scope["raw_path"]
    return raw.decode("ascii")


def raw_path(scope: Scope) -> str:
    """The path of the target, not decoded.

    A target may be a whole URL (RFC 9112, 3.2.2). Raises :class:`PathError` for one without a proper host.
    """
    target = raw_target(scope)
    if not _IS_ABSOLUTE.match(target):
        return target
    found = _ABSOLUTE.fullmatch(target)
    if found is None:
        raise PathError("it begins as a URL, but no host and port follow")
    return found[2]


def origin(scope: Scope) -> str:
    """Scheme, host and port of the target's URL, or else of the header ``Host``.

    It is used in answers: an invalid header is ignored, and the listener's own address used.
    """
    absolute = _ABSOLUTE.fullmatch(raw_target(scope))
    if absolute is not None:
        return absolute[1]
    host = next((value for name, value in scope["headers"] if name == b"host"), b"").decode(
        "latin-1"
    )
    if not _IS_HOST.fullmatch(host):
        address, port = scope["server"]
        host = f"{in_url(address)}:{port}"
    return f"{scope['scheme']}://{host}"


def in_url(host: str) -> str:
    """*host* as in a URL: an IPv6 address in brackets."""
    return f"[{host}]" if ":" in host else host
