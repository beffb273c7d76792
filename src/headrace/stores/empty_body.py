"""The body of an answer to which there is nothing."""

from __future__ import annotations

from headrace.stores.checksum import Checksum


class EmptyBody:
    """No bytes, of an object that has *total*."""

    checksum: Checksum | None = None

    def __init__(self, total: int) -> None:
        self.total = total

    def read(self, count: int) -> bytes:
        """See ``Body``."""
        return b""

    def close(self) -> None:
        """See ``Body``."""
