"""Paths: segments that may hold any character, encoded once and decoded once."""

from __future__ import annotations

import re
from urllib.parse import quote, unquote_to_bytes

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
