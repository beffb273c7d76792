"""The body of an answer to GetObject."""

from __future__ import annotations

import base64
import re
from collections.abc import Mapping
from typing import Any

from headrace.stores.checksum import Checksum
from headrace.stores.errors import StoreUnavailableError
from headrace.stores.s3.errors import telling

_RANGE = re.compile(r"bytes ([0-9]+)-[0-9]+/([0-9]+)")
# An object has one of them as a rule. S3 has others, such as XXHash, which nothing that is installed knows.
_CHECKSUMS = {
    "ChecksumCRC32": "crc32",
    "ChecksumCRC32C": "crc32c",
    "ChecksumCRC64NVME": "crc64nvme",
    "ChecksumSHA1": "sha1",
    "ChecksumSHA256": "sha256",
    "ChecksumSHA512": "sha512",
    "ChecksumMD5": "md5",
}


class S3Body:
    """The body of *answer*, which was to begin at byte *start*.

    Raises ``StoreUnavailableError`` for an answer that begins elsewhere.
    """

    def __init__(self, store: str, key: str, answer: Mapping[str, Any], start: int) -> None:
        self._store = store
        self._key = key
        self._stream = answer["Body"]
        begin, self.total = extent(answer)
        if begin != start:
            self.close()
            raise StoreUnavailableError(
                f"{store}: {key!r}: The answer begins at byte {begin}, but was asked for from {start} on."
            )
        self.checksum = None if "ContentRange" in answer else _checksum(answer)

    def read(self, count: int) -> bytes:
        """See ``Body``."""
        with telling(self._store, self._key, "GetObject"):
            return self._stream.read(count)

    def close(self) -> None:
        """See ``Body``. What was not read is not waited for: the connection is given up."""
        self._stream.close()


def extent(answer: Mapping[str, Any]) -> tuple[int, int]:
    """The first byte of *answer*, and the length of the whole object."""
    found = _RANGE.fullmatch(answer.get("ContentRange") or "")
    return (int(found[1]), int(found[2])) if found else (0, answer["ContentLength"])


def _checksum(answer: Mapping[str, Any]) -> Checksum | None:
    for field, kind in _CHECKSUMS.items():
        text = answer.get(field)
        # A checksum of an upload's parts, which ends with their number, is not of the bytes.
        if text and "-" not in text and answer.get("ChecksumType") != "COMPOSITE":
            return Checksum(kind, base64.b64decode(text))
    return None
