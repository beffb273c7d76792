"""A port before a broker whose connections are cut in the middle of a request or of an answer, or stall, when the test says so."""

from __future__ import annotations

import asyncio
import random
import threading
from collections.abc import Coroutine, Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import NamedTuple, Self, TypeVar

from headrace.broker import Broker
from headrace.broker.broker import FREE_PORTS
from project.brokers import PROPERTIES

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
        self._flows = asyncio.Event()
        self._flows.set()
        self._is_severed = False

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

    def stall(self) -> None:
        """Pass on nothing more, of new connections neither, and let no one know: as a network that drops what it is given."""
        self._call(self._let_flow(flows=False))

    def sever(self) -> None:
        """End all connections, and each new one at once, until :meth:`resume`."""
        self._call(self._sever())

    def resume(self) -> None:
        """Pass on what came meanwhile, and what comes."""
        self._call(self._let_flow(flows=True))

    def _call(self, doing: Coroutine[None, None, _T]) -> _T:
        return asyncio.run_coroutine_threadsafe(doing, self._loop).result(_SECONDS)

    async def _listen(self) -> None:
        self._server = await asyncio.start_server(self._connect, "127.0.0.1", self._ports[0])

    async def _mark(self, chance: random.Random) -> int:
        for pair in self._pairs:
            pair.ends_with = chance.choice(pair.ways)
        return len(self._pairs)

    async def _sever(self) -> None:
        self._is_severed = True
        for pair in self._pairs:
            pair.abort()

    async def _let_flow(self, *, flows: bool) -> None:
        self._is_severed = False
        (self._flows.set if flows else self._flows.clear)()

    async def _close(self) -> None:
        self._server.close()
        self._flows.set()
        for pair in list(self._pairs):
            pair.abort()
        await asyncio.gather(*self._handlers, return_exceptions=True)

    async def _connect(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        this = asyncio.current_task()
        assert this is not None
        self._handlers.add(this)
        this.add_done_callback(self._handlers.discard)
        if self._is_severed:
            writer.transport.abort()
            return
        try:
            found = await asyncio.open_connection("127.0.0.1", self._ports[1])
        except OSError:
            # The broker is away, which its client sees as it would without us.
            writer.transport.abort()
            return
        pair = _Pair(writer, found[1], self._flows)
        self._pairs.add(pair)
        try:
            await asyncio.gather(pair.pass_on(reader, found[1]), pair.pass_on(found[0], writer))
        finally:
            self._pairs.discard(pair)


class _Pair:
    """The two connections that are one for the client."""

    def __init__(
        self, client: asyncio.StreamWriter, broker: asyncio.StreamWriter, flows: asyncio.Event
    ) -> None:
        self.ways = client, broker
        self._flows = flows
        self.ends_with: asyncio.StreamWriter | None = None

    def abort(self) -> None:
        for each in self.ways:
            each.transport.abort()

    async def pass_on(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Until either side has ended, or it is this way's turn to be cut."""
        with suppress(OSError):
            while chunk := await reader.read(_CHUNK_BYTES):
                await self._flows.wait()
                if self.ends_with is writer:
                    writer.write(chunk[: len(chunk) // 2])
                    # What was written is sent before the abort, as far as the system takes it at once.
                    break
                writer.write(chunk)
                await writer.drain()
            await self._flows.wait()
        self.abort()


class Side(NamedTuple):
    """A cluster, the connections that may be cut, and the address from which a client gets those."""

    broker: Broker
    connections: CutConnections
    bootstrap: str


@contextmanager
def side(folder: Path, **features: int) -> Generator[Side]:
    """A broker with levels of *features*, and with a listener beside its own to which connections can be cut."""
    port, listens, advertised, controller = random.sample(FREE_PORTS, 4)
    properties = {
        **PROPERTIES,
        "listeners": f"PLAINTEXT://127.0.0.1:{port},CUT://127.0.0.1:{listens},CONTROLLER://127.0.0.1:{controller}",
        "advertised.listeners": f"PLAINTEXT://127.0.0.1:{port},CUT://127.0.0.1:{advertised}",
        "controller.quorum.voters": f"1@127.0.0.1:{controller}",
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CUT:PLAINTEXT,CONTROLLER:PLAINTEXT",
    }
    levels = {key.replace("_", "."): level for key, level in features.items()}
    with (
        CutConnections(advertised, listens) as connections,
        Broker(folder, port=port, properties=properties, features=levels) as broker,
    ):
        yield Side(broker, connections, f"127.0.0.1:{advertised}")
