"""An object as a listing saw it, wherever it lies."""

from __future__ import annotations

from typing import Protocol


class ObjectSeen(Protocol):
    """What plans have to know of a file on disk or an object of a store."""

    @property
    def path(self) -> str:
        """What offsets, errors and topics call it."""
        ...

    @property
    def size(self) -> int:
        """How many bytes it has."""
        ...

    @property
    def modified_ms(self) -> int:
        """When it was changed, in milliseconds since 1970."""
        ...

    @property
    def version(self) -> str:
        """Its identity, as offsets keep it."""
        ...

    def is_still(self, version: str) -> bool:
        """Whether it is the object that had *version*; a file may have grown since."""
        ...
