"""The protocol of stores: what the files connector needs of a place that holds objects."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Protocol

from headrace.formats.readable import Readable


@dataclass(slots=True, kw_only=True, unsafe_hash=True)
class StoredObject:
    """An object as a store told of it.

    *version* changes whenever the content does and is text of the adapter's own making, to be compared
    and given back, never read. *storage_class* is the store's word for objects that are not stored in the
    usual way, else ``None``. No one changes one; it is not frozen because listings make millions of them, and a
    frozen one takes three times as long.
    """

    key: str
    size: int
    version: str
    modified_ms: int
    storage_class: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Capabilities:
    """What a store can do besides what all can."""

    has_tags: bool = False


class Store(Protocol):
    """Objects by key. Used by one thread at a time.

    Every method tries again by itself what may pass, and raises ``StoreUnavailableError`` (an ``OSError``)
    when it did not, ``KeyNotRepresentableError`` for a key that the store cannot hold exactly, and
    ``TaskFailedError`` for what a person has to mend. *version* is the one that a listing or :meth:`head`
    gave; an object that has another by now raises ``ObjectChangedError``, and one that is not there
    ``ObjectGoneError``.
    """

    @property
    def name(self) -> str:
        """What errors call this store, such as ``s3://bucket``."""
        ...

    @property
    def capabilities(self) -> Capabilities:
        """What this store can do; never changes."""
        ...

    def list(self, prefix: str = "", start_after: str = "") -> Iterator[StoredObject]:
        """Every object whose key begins with *prefix* and sorts behind *start_after*, once each.

        Keys rise by their UTF-8 bytes, unless the store has no order, which is then logged once. *prefix*
        is any text, also one that ends inside a folder's name. Keeps one page in memory, or the names of
        the folders on the way. A key that cannot be told exactly ends the listing: nothing is left out.
        Called about once per planning round, by the driver, which may go on reading minutes later.
        """
        ...

    def head(self, key: str) -> StoredObject:
        """The object as it is now."""
        ...

    def open(
        self, key: str, version: str, position: int = 0, *, size: int | None = None
    ) -> Readable:
        """That version's bytes from *position* on, as a stream that can seek anywhere in the object.

        The stream goes on at the failed byte when a connection breaks. It ends only behind the last byte:
        a body that is shorter than the object, or than *size* where the caller knows it, is a failure, and
        where the store has a checksum and everything was read in order, it is compared before the last
        bytes are given: ``ChecksumError`` comes in their place when a second reading could not put it
        right. Reading raises what every method raises.
        """
        ...

    def copy(self, key: str, version: str, target: str) -> StoredObject:
        """Copy that version to *target*, over what may be there, and return the copy.

        Its length has been compared. A copy that failed leaves no half object under *target*.
        """
        ...

    def delete(self, key: str, version: str) -> bool:
        """Remove the object; ``False`` says that it was gone already, as far as the store could tell."""
        ...

    def tag(self, key: str, version: str, tags: Mapping[str, str]) -> None:
        """Add *tags* to the object's, or change them. ``NotImplementedError`` without ``has_tags``."""
        ...
