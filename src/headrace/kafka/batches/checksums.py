"""CRC-32C, the checksum of version 2 batches."""

from __future__ import annotations

import google_crc32c
import numpy as np

Bytes = bytes | bytearray | memoryview


def crc32c(data: Bytes, before: int = 0) -> int:
    """The checksum of *data*, behind bytes whose checksum is *before*; nothing is copied."""
    # The library takes no memoryview, but arrays. Both of its functions give the same for bytes that begin.
    return google_crc32c.extend(before, np.frombuffer(data, np.uint8))
