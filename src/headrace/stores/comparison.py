"""The bytes of a whole object, compared with the checksum that the store gives, a second time where they differ."""

from __future__ import annotations

import logging
from collections.abc import Callable

from headrace.formats.readable import Readable
from headrace.stores.checksum import Checksum
from headrace.stores.errors import ChecksumError, StoreUnavailableError

_LOG = logging.getLogger(__name__)
_PIECE = 1024 * 1024

_ARRIVED = (
    "A second reading found the bytes that the checksum speaks of, so that they were damaged on their way, "
    "some of them in records that were given on before this showed. Start the connector again. If a part of "
    "the object was committed, copy it to another key that is selected, to have all of it read again."
)
_STORED = (
    "A second reading found {again}: what is stored is not what the checksum speaks of. Write the object "
    "again, or exclude it."
)
_UNKNOWN = "A second reading did not go through: {error} Start the connector again."


class Comparison:
    """Used by one reader of the object *key* of *store*, from its first byte to its last, in one go."""

    def __init__(self, store: str, key: str, checksum: Checksum) -> None:
        self._store = store
        self._key = key
        self._checksum = checksum
        self._count = 0
        self._given = 0
        self._before = checksum

    def update(self, data: bytes) -> None:
        """Take in the next bytes."""
        self._checksum.update(data)
        self._count += len(data)

    def about_to_end(self) -> None:
        """Called before the last bytes are read: those before them were given on."""
        self._given = self._count
        self._before = self._checksum.copy()

    def settle(self, last: memoryview, reopen: Callable[[], Readable]) -> None:
        """Called once with the *last* bytes, which are held back until then.

        Where the checksum is another one, the object, which *reopen* opens, is read a second time, and *last*
        is filled with what is found then. Raises ``ChecksumError`` where that is not right either, or where
        the bytes before were not as they are found now, and what ``Store`` raises for objects that changed.
        """
        if self._checksum.matches:
            return
        again = self._checksum.again()
        try:
            as_given = self._read_again(last, reopen, again)
        except StoreUnavailableError as error:
            raise self._error(_UNKNOWN.format(error=error)) from error
        if not again.matches:
            raise self._error(_STORED.format(again=again.found))
        if not as_given:
            raise self._error(_ARRIVED)
        _LOG.warning(
            "%s: %r: Its last bytes were damaged on their way and were read again.",
            self._store,
            self._key,
        )

    def _read_again(
        self, last: memoryview, reopen: Callable[[], Readable], again: Checksum
    ) -> bool:
        """Whether the bytes before *last* are those that were given on."""
        stream = reopen()
        try:
            left = self._given
            while left and (data := stream.read(min(left, _PIECE))):
                again.update(data)
                left -= len(data)
            as_given = again.found == self._before.found
            stream.readinto(last)
            again.update(last)
            return as_given
        finally:
            stream.close()

    def _error(self, more: str) -> ChecksumError:
        checksum = self._checksum
        return ChecksumError(
            self._store,
            self._key,
            f"The {self._count} bytes that were read have the {checksum.kind} checksum {checksum.found}, but "
            f"the store gives {checksum.expected}. {more}",
        )
