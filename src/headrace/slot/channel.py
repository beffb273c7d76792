"""The slot's side of the channel: asks the driver, and believes nothing that is not answered."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterable, Mapping, Sequence
from itertools import count
from types import TracebackType
from typing import Any, Self

from headrace.connect.errors import RetriableError
from headrace.connect.partition import SourceOffset, SourcePartition
from headrace.slot.wire import Message, prove_to_server, receive_message, send_message
from headrace.slot.work import SlotTicket

_ANSWER_SECONDS = 5.0
# The driver writes to Kafka before it answers, ten seconds at most, behind another write and a read of as long.
_WRITTEN_SECONDS = 35.0
_SLOW = {"copy_first": _WRITTEN_SECONDS}
# Answered twice, they are as answered once. A claim is not: the second answer would be that it is stale.
_REPEATABLE = frozenset({"valid", "offsets", "end"})


class ChannelClient:
    """One connection to the driver; reconnects when it was lost.

    Every call waits at most five seconds, one for which the driver writes to Kafka 35, and raises
    :class:`~headrace.connect.errors.RetriableError` when there was no answer. Requests are numbered upwards, so that
    the driver tells one that was given up from what was asked since. A connection that was idle
    may have been lost unseen, so a request that may be repeated is asked once more, on a new one.
    """

    def __init__(self, ticket: SlotTicket) -> None:
        self._ticket = ticket
        self._connection: socket.socket | None = None
        self._numbers = count(1)
        # A connector may read offsets on a thread of its own.
        self._lock = threading.Lock()

    def ask(self, verb: str, **words: Any) -> Message:  # noqa: ANN401 (any JSON value)
        """Send a request about this slot's token and return the driver's answer; from any thread."""
        with self._lock:
            return self._answer_to(verb, words)

    def _answer_to(self, verb: str, words: Mapping[str, Any]) -> Message:
        was_idle = self._connection is not None
        try:
            answer = self._exchanged(verb, words)
        except OSError as error:
            if was_idle and verb in _REPEATABLE:
                return self._answer_to(verb, words)
            place = f"{self._ticket.host}:{self._ticket.port}"
            raise RetriableError(
                f"The driver at {place} did not answer {verb!r}: {error}"
            ) from error
        if "error" in answer:
            raise RetriableError(f"The driver could not answer {verb!r}: {answer['error']}")
        return answer

    def _exchanged(self, verb: str, words: Mapping[str, Any]) -> Message:
        try:
            connection = self._connected()
            connection.settimeout(_SLOW.get(verb, _ANSWER_SECONDS))
            who = {"token": self._ticket.token, "number": next(self._numbers)}
            send_message(connection, {"verb": verb, **who, **words})
            return receive_message(connection)
        except OSError:
            self.close()
            raise

    def close(self) -> None:
        """Close the connection; the next request opens another."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _connected(self) -> socket.socket:
        if self._connection is None:
            address = (self._ticket.host, self._ticket.port)
            connection = socket.create_connection(address, timeout=_ANSWER_SECONDS)
            try:
                prove_to_server(connection, self._ticket.secret)
            except OSError:
                connection.close()
                raise
            self._connection = connection
        return self._connection


class ChannelOffsets:
    """Reads committed offsets through the driver, which has them all; an ``OffsetReader``."""

    def __init__(self, client: ChannelClient) -> None:
        self._client = client

    def offset(self, partition: SourcePartition) -> SourceOffset | None:
        """The committed offset of *partition*, or ``None``."""
        return self.offsets([partition])[partition]

    def offsets(
        self, partitions: Iterable[SourcePartition]
    ) -> Mapping[SourcePartition, SourceOffset | None]:
        """The committed offsets of several partitions, in one exchange."""
        asked = list(partitions)
        answer = self._client.ask("offsets", partitions=[dict(each) for each in asked])
        found: Sequence[SourceOffset | None] = answer["offsets"]
        return dict(zip(asked, found, strict=True))
