"""Whether a file on disk is still the one that an offset speaks of. Pure."""

from __future__ import annotations

import re
import zlib

from headrace.connectors.files.file_opener import HEAD_BYTES

_VERSION = re.compile(r"([0-9a-f]+)-([0-9]+)-([0-9a-f]{8})")


def version_of(inode: int, head: bytes) -> str:
    """The identity of a file: its inode, and the length and checksum of its first bytes.

    Growing does not change it: only as many bytes are compared as there were when it was made.
    """
    head = head[:HEAD_BYTES]
    return f"{inode:x}-{len(head)}-{zlib.crc32(head):08x}"


def is_version(text: str) -> bool:
    """Whether *text* has the form that :func:`version_of` writes."""
    return _VERSION.fullmatch(text) is not None


def same_object(inode: int, head: bytes, version: str) -> bool:
    """Whether the file with *inode* and *head* is the one that *version* was made of, grown or not."""
    found = _VERSION.fullmatch(version)
    return found is not None and version == version_of(inode, head[: int(found[2])])
