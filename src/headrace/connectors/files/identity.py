"""Whether a file is still the one that an offset speaks of."""

from __future__ import annotations

import re
import zlib

from headrace.connectors.files.listing import HEAD_BYTES, FileSeen

_VERSION = re.compile(r"([0-9a-f]+)-([0-9]+)-([0-9a-f]{8})")


def version_of(file: FileSeen) -> str:
    """The identity of *file*: its inode, and the length and checksum of its first bytes.

    Growing does not change it: only as many bytes are compared as there were when it was made.
    """
    head = file.head[:HEAD_BYTES]
    return f"{file.inode:x}-{len(head)}-{zlib.crc32(head):08x}"


def is_version(text: str) -> bool:
    """Whether *text* has the form that :func:`version_of` writes."""
    return _VERSION.fullmatch(text) is not None


def same_object(file: FileSeen, version: str) -> bool:
    """Whether *file* is the object that *version* was made of, grown or not."""
    found = _VERSION.fullmatch(version)
    if found is None:
        return False
    head = file.head[: int(found[2])]
    return version == f"{file.inode:x}-{len(head)}-{zlib.crc32(head):08x}"
