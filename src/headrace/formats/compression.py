"""How objects are packed, and how their names and first bytes tell it."""

from __future__ import annotations

import codecs
from enum import StrEnum


class Compression(StrEnum):
    """How an object's bytes are packed. Snappy is the framing format, or that of xerial's Java library."""

    NONE = "none"
    GZIP = "gzip"
    ZSTD = "zstd"
    BZIP2 = "bzip2"
    XZ = "xz"
    SNAPPY = "snappy"
    LZ4 = "lz4"


EXTENSIONS = {
    ".gz": Compression.GZIP,
    ".zst": Compression.ZSTD,
    ".bz2": Compression.BZIP2,
    ".xz": Compression.XZ,
    ".sz": Compression.SNAPPY,
    ".snappy": Compression.SNAPPY,
    ".lz4": Compression.LZ4,
}
"""The extensions that tell a compression. Pure data; also what is cut off before the format is looked up."""

_MAGIC = {
    b"\x1f\x8b\x08": Compression.GZIP,
    b"\x28\xb5\x2f\xfd": Compression.ZSTD,
    b"BZh": Compression.BZIP2,
    b"\xfd7zXZ\0": Compression.XZ,
    b"\xff\x06\0\0sNaPpY": Compression.SNAPPY,
    b"\x82SNAPPY\0": Compression.SNAPPY,
    b"\x04\x22\x4d\x18": Compression.LZ4,
}
HEAD_BYTES = max(map(len, _MAGIC))
"""How many of an object's first bytes tell how it is packed."""


def by_name(name: str) -> Compression:
    """What the extension of *name* says; ``NONE`` when it is not one of a compression."""
    return next(
        (found for end, found in EXTENSIONS.items() if name.endswith(end)), Compression.NONE
    )


def begins_like(head: bytes, compression: Compression) -> bool:
    """Whether an object that begins with *head* may be packed so; pure."""
    return any(head.startswith(magic) for magic, kind in _MAGIC.items() if kind is compression)


def by_magic(head: bytes) -> Compression:
    """What an object that begins with *head* is packed with; ``NONE`` for whatever may be UTF-8 text.

    Pure; called once per object by connectors of text. The first bytes of bzip2 and lz4 may begin a text,
    too, so they count only where *head* is no text.
    """
    found = next((kind for magic, kind in _MAGIC.items() if head.startswith(magic)), None)
    return Compression.NONE if found is None or _may_be_text(head) else found


def _may_be_text(head: bytes) -> bool:
    try:
        codecs.getincrementaldecoder("utf-8")().decode(head)
    except UnicodeDecodeError:
        return False
    return True
