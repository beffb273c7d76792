"""What a request is aimed at: its path as it was sent, and the address by which its client reached this worker."""

from __future__ import annotations

import re

from starlette.datastructures import Headers
from starlette.types import Scope

from headrace.rest.listener import in_url
from headrace.rest.path_segments import PathError

_HOST = r"(?:\[[0-9a-fA-F:.]+\]|[0-9a-zA-Z._~%-]+)(?::[0-9]{1,5})?"
_IS_HOST = re.compile(_HOST)
_IS_ABSOLUTE = re.compile(r"https?://", re.IGNORECASE)
_ABSOLUTE = re.compile(rf"(https?://{_HOST})((?:/.*)?)", re.IGNORECASE)


def raw_target(scope: Scope) -> str:
    """The target without its query, with nothing decoded."""
    raw: bytes = scope["raw_path"]
    return raw.decode("ascii")


def raw_path(scope: Scope) -> str:
    """The path of the target, with nothing decoded.

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

    It goes into answers: a header that is no host is passed over, and the listener's own address taken.
    """
    absolute = _ABSOLUTE.fullmatch(raw_target(scope))
    if absolute is not None:
        return absolute[1]
    host = Headers(scope=scope).get("host", "")
    if not _IS_HOST.fullmatch(host):
        address, port = scope["server"]
        host = f"{in_url(address)}:{port}"
    return f"{scope['scheme']}://{host}"
