"""One object of a source, as its author sees it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Generic

from headrace.connect.errors import TaskFailedError
from headrace.formats.readable import Readable
from headrace.sources.keys import K

UNKNOWN_LENGTH = -1


class NotAStreamError(TaskFailedError):
    """The item has no bytes to read: an extractor that does not ask for a stream has to be used."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Context(Generic[K]):
    """What an item's key and content tell about its records before they are read.

    *topic* and *partition* are where its records go, unless the configuration or the last evolution
    says otherwise.
    """

    native_key: K
    topic: str | None = None
    partition: int | None = None


class NativeItem(ABC, Generic[K]):
    """An object that the source listed. Made again by each listing; used on one thread."""

    @abstractmethod
    def context(self) -> Context[K]:
        """The item's native key, and topic and partition where the key or the object tells them."""

    def open(self) -> Readable:
        """The object's bytes from the first one on; a new stream each time, closed by the caller.

        Raises ``OSError`` when the store does not give them, which is tried again. An item that is no
        stream leaves this as it is.
        """
        raise NotAStreamError(f"{self.context().native_key}: This item is not a stream of bytes.")

    def estimated_length(self) -> int:
        """How many bytes :meth:`open` gives, about; :data:`UNKNOWN_LENGTH` when no one knows.

        Raises :class:`NotAStreamError` when that does.
        """
        if type(self).open is NativeItem.open:
            raise NotAStreamError(
                f"{self.context().native_key}: This item is not a stream of bytes, so it has no length."
            )
        return UNKNOWN_LENGTH

    def version(self) -> str | None:
        """A text that changes when the object's content does, such as an entity tag; ``None``: not known.

        Asked of each object that a listing shows, so it should be what the listing told; and again when the
        object is opened after a failure. What happens to a changed one, ``native.changed`` says.
        """
        return None
