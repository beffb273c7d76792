"""The driver's side of the channel: a small server that answers the slots' requests about their tokens."""

from __future__ import annotations

import ipaddress
import logging
import secrets
import socket
import socketserver
import ssl
import threading
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from typing import Any

from headrace.connect.errors import ConnectError, TaskFailedError
from headrace.connect.partition import SourcePartition
from headrace.kafka.sender import OffsetEntry
from headrace.observe.log_format import LogForm
from headrace.runtime.micro_batch import MicroBatch
from headrace.runtime.slot_versions import SlotVersions
from headrace.task.channel import (
    Message,
    is_readable,
    prove_to_client,
    receive_message,
    send_message,
)
from headrace.task.slot_report import STALE, Outcome, SlotReport
from headrace.task.slot_work import SlotTicket

_log = logging.getLogger(__name__)

# How often a quiet connection is checked: it is closed unless its slot has yet to report its end. A slot
# whose machine is gone loses its token with its lease, so its connection does not stay open forever.
_QUIET_SECONDS = 60.0
_END = "end"

TakeEntries = Callable[[Sequence[OffsetEntry]], None]


def _refuse_copies(_: Sequence[OffsetEntry]) -> None:
    raise TaskFailedError("This worker has no secondary offset store.")


@dataclass(frozen=True, slots=True, kw_only=True)
class ChannelTls:
    """The server's TLS context, and the SHA-256 of its certificate, by which slots know it."""

    context: ssl.SSLContext = field(repr=False)
    fingerprint: bytes


class Channel:
    """Listens on *address*, a host and a port (0: any free one), for the slots of every micro-batch in flight.

    *store* stores acknowledged offsets if the driver keeps them. For offsets that are kept elsewhere, *copy_first*
    removes secondary offsets before it returns, and *copy_later* takes committed offsets to copy. Each may block:
    heartbeats are answered meanwhile. While *holds* is false, this worker may have been given up by its group, and slots are
    answered as those of a batch that is over. *log* returns the slots' log settings, and is called again for each beat.
    Both sides authenticate. With *tls* everything is encrypted; without it, a warning is logged once if other machines can reach the
    listener. A connection that is quiet for *quiet_seconds* is closed if nothing more is expected of its slot.
    Threads: one that accepts, one per connected slot.
    """

    def __init__(  # noqa: PLR0913 - a worker gives all of it, and tests what they are about
        self,
        store: TakeEntries,
        *,
        copy_first: TakeEntries = _refuse_copies,
        copy_later: TakeEntries = _refuse_copies,
        address: tuple[str, int] = ("127.0.0.1", 0),
        tls: ChannelTls | None = None,
        log: Callable[[], LogForm] = LogForm,
        holds: Callable[[], bool] = lambda: True,
        quiet_seconds: float = _QUIET_SECONDS,
    ) -> None:
        self._holds = holds
        self._quiet_seconds = quiet_seconds
        self._log = log
        self._secret = secrets.token_bytes(32)
        self._lock = threading.Lock()
        self._batches: dict[str, MicroBatch] = {}
        self.versions = SlotVersions()
        """Which slots were refused; see :class:`~headrace.runtime.slot_versions.SlotVersions`."""
        self._server = _Server(address, self)
        self._host = address[0]
        self._tls = tls
        if tls is None:
            _warn_if_public(self._server.server_address[0], configured=self._host)
        self._verbs: dict[str, Callable[[MicroBatch | None, str, Message], Message]] = {
            "claim": self._claim,
            "valid": self._valid,
            "beat": self._beat,
            "offsets": self._offsets,
            "store": partial(self._take_offsets, store),
            "copy_first": partial(self._copy_first, copy_first),
            "copy_later": partial(self._take_offsets, copy_later),
            _END: self._end,
        }
        self._thread = threading.Thread(
            target=self._server.serve_forever, name="headrace-channel", daemon=True
        )
        self._thread.start()

    def open(self, batch: MicroBatch) -> list[SlotTicket]:
        """Answer the slots of *batch* from now on; returns their tickets."""
        with self._lock:
            self._batches.update(dict.fromkeys(batch.tokens(), batch))
        port = self._server.server_address[1]
        fingerprint = None if self._tls is None else self._tls.fingerprint
        return [
            SlotTicket(
                host=self._host,
                port=port,
                secret=self._secret,
                token=slot.token,
                fingerprint=fingerprint,
            )
            for slot in batch.slots
        ]

    def forget(self, batch: MicroBatch) -> None:
        """Answer "stale" to all further requests for *batch*."""
        with self._lock:
            for token in batch.tokens():
                self._batches.pop(token, None)

    def close(self) -> None:
        """Stop listening."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def serve(self, connection: socket.socket) -> None:
        """Answer one slot until it disconnects. Called by the server, in a thread of its own."""
        connection.settimeout(self._quiet_seconds)
        try:
            if self._tls is None:
                self._answer_all(connection)
            else:
                with self._tls.context.wrap_socket(connection, server_side=True) as inner:
                    self._answer_all(inner)
        except OSError as gone:
            _log.debug("A slot's connection ended: %s", gone)

    def _answer_all(self, connection: socket.socket) -> None:
        prove_to_client(connection, self._secret)
        token = None
        while True:
            self._await_request(connection, token)
            message = receive_message(connection)
            token = str(message.get("token"))
            send_message(connection, self._answer(message, token))

    def _await_request(self, connection: socket.socket, token: str | None) -> None:
        """Wait for a request while one is expected of the slot of *token*; raises ``OSError`` when none is."""
        while not is_readable(connection):
            if token is None or not self._expects(token):
                raise TimeoutError("It was quiet, and no more requests are expected.")

    def _expects(self, token: str) -> bool:
        batch = self._batch_of(token)
        return batch is not None and batch.expects(token)

    def _batch_of(self, token: str) -> MicroBatch | None:
        with self._lock:
            return self._batches.get(token)

    def _answer(self, message: Message, token: str) -> Message:
        named = str(message.get("verb"))
        batch = self._batch_of(token) if named == _END or self._holds() else None
        verb = self._verbs.get(named)
        if verb is None:
            return {"error": f"unknown verb {message.get('verb')!r}"}
        try:
            return verb(batch, token, message)
        except Exception as error:  # noqa: BLE001 (the error is the answer to the slot)
            _log.exception("The channel could not answer %r", message.get("verb"))
            return {"error": str(error)}

    def _claim(self, batch: MicroBatch | None, token: str, message: Message) -> Message:
        refusal = self.versions.refusal(message["host"], message["version"])
        if refusal is not None:
            if batch is not None:
                batch.refuse(token, SlotReport(outcome=Outcome.REFUSED, reason=refusal))
            return {"granted": False, "reason": refusal}
        work = None
        if batch is not None:
            work = batch.claim(
                token,
                pid=message["pid"],
                host=message["host"],
                identity=message.get("identity"),
            )
        if work is None:
            return {"granted": False, "reason": STALE}
        return {"granted": True, "work": work.as_message(), "log": asdict(self._log())}

    def _valid(self, batch: MicroBatch | None, token: str, _: Message) -> Message:
        try:
            return {"valid": batch is not None and batch.may_write(token)}
        except ConnectError as error:
            return {"valid": False, "reason": str(error)}

    def _beat(self, batch: MicroBatch | None, token: str, message: Message) -> Message:
        if batch is None:
            return {"valid": False}
        valid, end = batch.beat(token, message["progress"])
        return {"valid": valid, "end": end, "log": asdict(self._log())}

    def _offsets(self, batch: MicroBatch | None, _: str, message: Message) -> Message:
        if batch is None:
            return {"error": "stale"}
        asked = [SourcePartition(each) for each in message["partitions"]]
        found = [batch.offsets.get(each) for each in asked]
        return {"offsets": [None if each is None else dict(each) for each in found]}

    def _take_offsets(
        self, take: TakeEntries, batch: MicroBatch | None, token: str, message: Message
    ) -> Message:
        entries = [
            (key.encode(), None if value is None else value.encode())
            for key, value in message["entries"]
        ]
        stored = batch is not None and batch.while_valid(
            token, message["number"], lambda: take(entries)
        )
        return {"stored": stored, "reason": "The token was withdrawn."}

    def _copy_first(
        self, take: TakeEntries, batch: MicroBatch | None, token: str, message: Message
    ) -> Message:
        """As :meth:`_take_offsets`; a slot that lost its token meanwhile must not remove its own offsets."""
        answer = self._take_offsets(take, batch, token, message)
        return (
            answer if batch is not None and batch.is_valid(token) else {**answer, "stored": False}
        )

    def _end(self, batch: MicroBatch | None, token: str, message: Message) -> Message:
        if batch is not None:
            batch.end(token, SlotReport.from_message(message["report"]))
        return {}


def _warn_if_public(address: object, *, configured: str) -> None:
    if not ipaddress.ip_address(str(address)).is_loopback:
        _log.warning(
            "headrace.channel.listener is %s, which other machines can reach. Slots authenticate, but "
            "the channel is not encrypted, as headrace.channel.security.protocol says: connectors' settings and their producers' "
            "passwords can be read on the network between worker and slots. Use only a trusted network.",
            configured,
        )


class _Server(socketserver.ThreadingTCPServer):
    daemon_threads = True
    allow_reuse_address = True

    def __init__(self, address: tuple[str, int], channel: Channel) -> None:
        self._channel = channel
        super().__init__(address, socketserver.BaseRequestHandler)

    def finish_request(self, request: Any, client_address: Any) -> None:  # noqa: ANN401 (as overridden)
        self._channel.serve(request)
