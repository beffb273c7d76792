"""A port before a broker whose connections are cut in the middle of a request or of an answer, when the test says so."""

from __future__ import annotations

import asyncio
import random
import threading
from collections.abc import Coroutine
from contextlib import suppress
from types import TracebackType
from typing import Self, TypeVar

_T = TypeVar("_T")
_CHUNK_BYTES = 1 << 16
_SECONDS = 10.0


class CutConnections:
    """Passes on what arrives at *port* to *broker_port*, both of loopback; while it is entered.

    A broker that advertises *port* has its clients connect through it.
    """

    def __init__(self, port: int, broker_port: int) -> None:
        self._ports = port, broker_port
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._pairs = set[_Pair]()
        self._handlers = set[asyncio.Task[None]]()

    def __enter__(self) -> Self:
        """Listen."""
        self._thread.start()
        self._call(self._listen())
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close everything."""
        self._call(self._close())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(_SECONDS)
        self._loop.close()

    def cut(self, chance: random.Random) -> int:
        """Have each connection end with what it carries next, half of a request or half of an answer; returns how many."""
        return self._call(self._mark(chance))

    def _call(self, doing: Coroutine[None, None, _T]) -> _T:
        return asyncio.run_coroutine_threadsafe(doing, self._loop).result(_SECONDS)

    async def _listen(self) -> None:
        self._server = await asyncio.start_server(self._connect, "127.0.0.1", self._ports[0])

    async def _mark(self, chance: random.Random) -> int:
        for pair in self._pairs:
            pair.ends_with = chance.choice(pair.ways)
        return len(self._pairs)

    async def _close(self) -> None:
        self._server.close()
        for pair in list(self._pairs):
            pair.abort()
        await asyncio.gather(*self._handlers, return_exceptions=True)

    async def _connect(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        this = asyncio.current_task()
        assert this is not None
        self._handlers.add(this)
        this.add_done_callback(self._handlers.discard)
        try:
            found = await asyncio.open_connection("127.0.0.1", self._ports[1])
        except OSError:
            # The broker is away, which its client sees as it would without us.
            writer.transport.abort()
            return
        pair = _Pair(writer, found[1])
        self._pairs.add(pair)
        try:
            await asyncio.gather(pair.pass_on(reader, found[1]), pair.pass_on(found[0], writer))
        finally:
            self._pairs.discard(pair)


class _Pair:
    """The two connections that are one for the client."""

    def __init__(self, client: asyncio.StreamWriter, broker: asyncio.StreamWriter) -> None:
        self.ways = client, broker
        self.ends_with: asyncio.StreamWriter | None = None

    def abort(self) -> None:
        for each in self.ways:
            each.transport.abort()

    async def pass_on(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Until either side has ended, or it is this way's turn to be cut."""
        with suppress(OSError):
            while chunk := await reader.read(_CHUNK_BYTES):
                if self.ends_with is writer:
                    writer.write(chunk[: len(chunk) // 2])
                    # What was written is sent before the abort, as far as the system takes it at once.
                    break
                writer.write(chunk)
                await writer.drain()
        self.abort()
