"""The body of an answer over plain HTTP."""

from __future__ import annotations

import re

from headrace.stores.checksum import Checksum
from headrace.stores.errors import StoreUnavailableError
from headrace.stores.rest.client import Response

_RANGE = re.compile(r"bytes ([0-9]+)-[0-9]+/([0-9]+)")


class RestBody:
    """The body of *response*, which was to begin at byte *start*; see ``Body``.

    *checksum* is the whole object's, where the store gives it. Raises ``StoreUnavailableError`` for an
    answer that begins elsewhere, or does not tell how long it is.
    """

    def __init__(
        self, place: str, response: Response, start: int, checksum: Checksum | None
    ) -> None:
        self._response = response
        extent = _extent(response)
        if extent is None or extent[0] != start:
            self.close()
            found = "of unknown length" if extent is None else f"from byte {extent[0]} on"
            raise StoreUnavailableError(
                f"{place}: The answer is {found}, but was asked for from byte {start} on."
            )
        self.total = extent[1]
        self.checksum = None if "Content-Range" in response.headers else checksum

    def read(self, count: int) -> bytes:
        """See ``Body``."""
        return self._response.read(count)

    def close(self) -> None:
        """See ``Body``."""
        self._response.close()


def _extent(response: Response) -> tuple[int, int] | None:
    """The first byte, and the length of the whole object."""
    found = _RANGE.fullmatch(response.headers.get("Content-Range", ""))
    if found:
        return int(found[1]), int(found[2])
    length = response.headers.get("Content-Length", "")
    return (0, int(length)) if length.isdecimal() else None
