"""An object's bytes over ranged requests, as a stream that does not end before the object does."""

from __future__ import annotations

import os
from collections.abc import Callable
from io import RawIOBase
from typing import TYPE_CHECKING, Protocol

from headrace.stores.checksum import Checksum
from headrace.stores.comparison import Comparison
from headrace.stores.errors import (
    ObjectChangedError,
    StoreUnavailableError,
)
from headrace.stores.retries import Retries

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

FIRST_WINDOW = 1024 * 1024
"""How much the first request after a jump asks for; each one behind it asks for twice as much."""
SKIPPED = 64 * 1024
"""Jumps forward up to here are read over, which is cheaper than a new request."""


class Body(Protocol):
    """The answer to one request, read once."""

    total: int
    """The length of the whole object, as this answer tells it."""
    checksum: Checksum | None
    """Of the whole object; only where the body is the whole object."""

    def read(self, count: int) -> bytes:
        """Up to *count* bytes, none at the end. Raises ``StoreUnavailableError``."""
        ...

    def close(self) -> None:
        """Give the connection back, or up."""
        ...


Fetch = Callable[[int, int | None], Body]
"""Asks for the bytes from the first number to before the second, or to the end.

Makes one attempt: raises ``StoreUnavailableError`` for what may pass, and otherwise what
:class:`~headrace.stores.store.Store` says. A range behind the end has an empty body.
"""


class RangedReader(RawIOBase):
    """Reads the object *key* of *store* from *position* on; the first request is made at once.

    *size* is the object's length where the caller knows it; otherwise the first answer's word is taken.
    What is read from the first byte to the last in one go is compared with the store's checksum, unless
    *compare* is false.
    """

    def __init__(
        self,
        *,
        store: str,
        key: str,
        fetch: Fetch,
        position: int,
        size: int | None,
        retries: Retries,
        compare: bool = True,
    ) -> None:
        self._store = store
        self._key = key
        self._fetch = fetch
        self._position = position
        self._size = size
        self._retries = retries
        self._body: Body | None = None
        self._window: int | None = None
        self._stop = 0
        retries.call(self._connect)
        checksum = self._body.checksum if self._body and compare else None
        self._comparison = Comparison(store, key, checksum) if checksum else None
        if position > self._length:
            raise ObjectChangedError(
                store,
                key,
                f"It has {self._length} bytes, but was read up to position {position} before.",
            )

    def readable(self) -> bool:
        """See :class:`io.RawIOBase`."""
        return True

    def seekable(self) -> bool:
        """See :class:`io.RawIOBase`."""
        return True

    def tell(self) -> int:
        """See :class:`io.RawIOBase`."""
        return self._position

    def seek(self, offset: int, whence: int = os.SEEK_SET, /) -> int:
        """See :class:`io.RawIOBase`; asks nothing of the store unless it skips a little."""
        base = {os.SEEK_SET: 0, os.SEEK_CUR: self._position, os.SEEK_END: self._length}[whence]
        target = base + offset
        if target < 0:
            raise ValueError(f"{offset} is a place before the object's beginning.")
        ahead = target - self._position
        if self._body and 0 < ahead <= SKIPPED and target <= self._length:
            self.read(ahead)
        elif ahead:
            self._drop()
            self._comparison = None
            self._window = FIRST_WINDOW
            self._position = target
        return target

    def readinto(self, buffer: WriteableBuffer, /) -> int:
        """Fill *buffer*; with less only at the object's end. Raises as ``Store.open`` says."""
        if self.closed:
            raise ValueError("The stream is closed.")
        view = memoryview(buffer).cast("B")
        comparison = self._comparison
        if comparison and len(view) >= self._length - self._position:
            comparison.about_to_end()
        filled = self._fill(view)
        if comparison and self._position == self._length:
            self._comparison = None
            comparison.settle(view[:filled], self._again)
        return filled

    def close(self) -> None:
        """Give the connection up."""
        self._drop()
        super().close()

    @property
    def _length(self) -> int:
        return self._size or 0

    def _fill(self, view: memoryview) -> int:
        filled = 0
        while filled < len(view) and self._position < self._length:
            data = self._retries.call(lambda: self._some(len(view) - filled))  # noqa: B023 (called at once)
            view[filled : filled + len(data)] = data
            filled += len(data)
        return filled

    def _again(self) -> RangedReader:
        return RangedReader(
            store=self._store,
            key=self._key,
            fetch=self._fetch,
            position=0,
            size=self._length,
            retries=self._retries,
            compare=False,
        )

    def _some(self, count: int) -> bytes:
        """At least one byte; otherwise the request is given up, and the next one begins where it stopped."""
        try:
            body = self._body or self._connect()
            data = body.read(min(count, self._stop - self._position))
            if not data:
                raise StoreUnavailableError(
                    f"{self._store}: {self._key!r}: The body ended at byte {self._position}, but should "
                    f"have gone on to byte {self._stop}."
                )
        except StoreUnavailableError:
            self._drop()
            raise
        self._advance(data)
        return data

    def _advance(self, data: bytes) -> None:
        self._position += len(data)
        if self._comparison:
            self._comparison.update(data)
        if self._position == self._stop:
            self._drop()

    def _connect(self) -> Body:
        stop = self._position + self._window if self._window else None
        self._window = self._window * 2 if self._window else None
        body = self._fetch(self._position, stop)
        size = body.total if self._size is None else self._size
        if body.total != size:
            body.close()
            raise StoreUnavailableError(
                f"{self._store}: {self._key!r}: The answer speaks of {body.total} bytes, but the object "
                f"has {size}."
            )
        self._size = size
        self._stop = size if stop is None else min(stop, size)
        self._body = body
        return body

    def _drop(self) -> None:
        body, self._body = self._body, None
        if body:
            body.close()
