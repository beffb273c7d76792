"""So many bytes of an object, wherever its stream happens to cut them."""

from __future__ import annotations

from headrace.formats.streams import SkippingStream

_BUFFER_BYTES = 64 * 1024


class ExactBytes:
    """Reads *stream*, which begins at the object's byte *position*. There are no bytes from *limit* on.

    Raises what the stream raises; a :class:`~headrace.connect.errors.RecordError` with its position.
    """

    def __init__(
        self, stream: SkippingStream, *, limit: int | None = None, position: int = 0
    ) -> None:
        self._stream = stream
        self._limit = limit
        self._buffer = bytearray(_BUFFER_BYTES)
        self._held = memoryview(b"")
        self._read = position

    @property
    def position(self) -> int:
        """The byte behind what was returned."""
        return self._read - len(self._held)

    def up_to(self, size: int) -> bytes:
        """The next *size* bytes; fewer only at the end."""
        if size <= len(self._held):
            return self._take(size)
        found = bytearray(self._take(len(self._held)))
        while len(found) < size:
            if not self._fill():
                break
            found += self._take(min(len(self._held), size - len(found)))
        return bytes(found)

    def skip(self, size: int) -> None:
        """Go on behind the next *size* bytes; that there are fewer shows at the next reading."""
        held = min(size, len(self._held))
        self._held = self._held[held:]
        if size > held:
            self._read += size - held
            self._stream.skip(size - held)

    def go_behind(self, marker: bytes, *, before: int) -> bool:
        """Go on behind the next *marker*, if it ends before byte *before*; whether one was found."""
        seen = b""
        while self.position < before:
            if not self._held and not self._fill():
                return False
            window = seen + self._held
            found = window.find(marker)
            if found >= 0:
                self._held = self._held[found + len(marker) - len(seen) :]
                return self.position < before
            # The marker may begin in these bytes and end in the next ones.
            seen = window[1 - len(marker) :]
            self._held = self._held[len(self._held) :]
        return False

    def close(self) -> None:
        """Close the stream."""
        self._stream.close()

    def _take(self, size: int) -> bytes:
        taken, self._held = bytes(self._held[:size]), self._held[size:]
        return taken

    def _fill(self) -> bool:
        target = memoryview(self._buffer)
        if self._limit is not None:
            target = target[: max(0, self._limit - self._read)]
        count = self._stream.read_into(target) if target else 0
        self._read += count
        self._held = target[:count]
        return bool(count)
