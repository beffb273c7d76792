"""The stream of the standard library's HTTP client, which ends like any other one where its connection breaks."""

from __future__ import annotations

from http.client import HTTPException, HTTPResponse
from io import RawIOBase
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer


class Response(RawIOBase):
    """The bytes of *response*; raises ``ConnectionError`` where they end before what its head has announced."""

    def __init__(self, response: HTTPResponse) -> None:
        self._response = response

    def readable(self) -> bool:
        """See :class:`io.RawIOBase`."""
        return True

    def readinto(self, buffer: WriteableBuffer, /) -> int:
        """See :class:`io.RawIOBase`."""
        try:
            count = self._response.readinto(buffer)
        except HTTPException as error:
            raise ConnectionError(f"the response ended too early ({error!r})") from error
        # What is left of it is counted there, and None where no one knows.
        left: int | None = self._response.length
        if not count and left and memoryview(buffer).nbytes:
            raise ConnectionError(f"the response ended {left} bytes too early")
        return count

    def close(self) -> None:
        """See :class:`io.RawIOBase`."""
        self._response.close()
        super().close()
