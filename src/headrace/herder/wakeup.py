"""Wakes the thread of a group's worker: by other threads, and by what its brokers send."""

from __future__ import annotations

import select
import socket
from collections.abc import Collection
from contextlib import suppress
from typing import Final

# What arrives together is taken together.
_TOGETHER_MS: Final = 5


class Wakeup:
    """One thread waits, any other one wakes it; being woken while it does not wait keeps it from waiting next time."""

    def __init__(self) -> None:
        self._sockets: tuple[socket.socket, socket.socket] | None = None
        self._is_set = False

    def set(self) -> None:
        """Wake it, or have it not wait the next time. Nothing happens after :meth:`close`."""
        if self._is_set:
            return
        self._is_set = True
        if self._sockets is not None:
            # Closed, or it has been woken already.
            with suppress(OSError):
                self._sockets[1].send(b"\0")

    def wait(self, seconds: float, sources: Collection[int] = ()) -> None:
        """Return when it is woken, one of the file descriptors *sources* is readable, or after *seconds*."""
        if self._sockets is None:
            self._sockets = socket.socketpair()
            for each in self._sockets:
                each.settimeout(0)
        own = self._sockets[0].fileno()
        poll = select.poll()
        for each in (own, *sources):
            poll.register(each, select.POLLIN)
        # Who has woken it before there were sockets has only said so.
        found = poll.poll(0 if self._is_set else max(0.0, seconds) * 1e3)
        if found and all(each != own for each, _ in found):
            for each in sources:
                poll.unregister(each)
            poll.poll(_TOGETHER_MS)
        self.clear()

    def clear(self) -> None:
        """Forget that it was woken."""
        # First, so that who wakes it from here on is heard.
        self._is_set = False
        if self._sockets is not None:
            with suppress(BlockingIOError):
                self._sockets[0].recv(1024)

    def close(self) -> None:
        """Release the sockets."""
        for each in self._sockets or ():
            each.close()
