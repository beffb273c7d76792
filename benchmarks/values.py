"""Values of records in a file, for contenders that send the same ones: each after its length."""

from __future__ import annotations

import struct
from collections.abc import Iterable
from pathlib import Path

_LENGTH = struct.Struct("<I")


def write_values(path: Path, values: Iterable[bytes]) -> None:
    """Write *values*, whatever bytes they hold."""
    path.write_bytes(b"".join(_LENGTH.pack(len(each)) + each for each in values))


def read_values(path: Path) -> list[bytes]:
    """What :func:`write_values` wrote."""
    content, at, found = path.read_bytes(), 0, list[bytes]()
    while at < len(content):
        (length,) = _LENGTH.unpack_from(content, at)
        at += _LENGTH.size + length
        found.append(content[at - length : at])
    return found
