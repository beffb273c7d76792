"""What an offset says of the bytes before it, so that they can be known again. Pure.

A file is the one that was read when it still begins with what was sent of it, whatever its inode, size and
time are: so a bad record can be put right with any editor. Up to ``EDGE_BYTES`` at the beginning and before
the position are compared; comparing everything would mean reading everything again at each start.

A file that was read to its end and lies there under another inode is the same one only if all its bytes are: nothing
else of it will be read, so that a change between the edges would be lost. For that an offset has a digest.
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass, field

from headrace.connect.partition import SourceOffset

EDGE_BYTES = 1024
CHECKED = "checked"
CHECKSUM = "checksum"
# Not "digest", which an earlier version made by another checksum.
DIGEST = "contentDigest"


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class PrefixFingerprint:
    """The *checksum* of the edges of the bytes before byte *checked* of a file's (unpacked) text.

    *digest* is the checksum of all these bytes, ``None`` where no one has read them all.
    """

    checked: int
    checksum: int
    digest: int | None = field(default=None, compare=False)


def fingerprint_of(offset: SourceOffset | None) -> PrefixFingerprint | None:
    """What *offset* says, or ``None`` for one that a person or an earlier version wrote."""
    checked, checksum = ((offset or {}).get(key) for key in (CHECKED, CHECKSUM))
    if not isinstance(checked, int) or not isinstance(checksum, int):
        return None
    return PrefixFingerprint(checked=checked, checksum=checksum, digest=digest_of(offset))


def digest_of(offset: SourceOffset | None) -> int | None:
    """The checksum of all bytes that *offset* speaks of, or ``None`` where it has none."""
    digest = (offset or {}).get(DIGEST)
    return digest if isinstance(digest, int) else None


def fingerprint_from(
    position: int, *, head: bytes, tail: bytes, digest: int | None = None
) -> PrefixFingerprint:
    """The fingerprint for *position*: *head* and *tail* are the first and the last bytes before it.

    Each is as long as there are bytes, at most ``EDGE_BYTES``; *digest* is the checksum of all of them.
    """
    # 31 and 32 bits, so that it is a positive number in a column of 64 bits.
    checksum = (zlib.crc32(head) & 0x7FFFFFFF) << 32 | zlib.crc32(tail)
    return PrefixFingerprint(checked=position, checksum=checksum, digest=digest)
