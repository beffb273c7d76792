"""Requests to transaction coordinators that the client library has no call for (KIP-360, KIP-664)."""

from __future__ import annotations

import ssl
import threading
import time
from collections.abc import Callable, Collection
from functools import cached_property
from typing import Any, Final, TypeVar

from confluent_kafka import KafkaError
from kafka.protocol.admin.transactions import ListTransactionsRequest
from kafka.protocol.metadata.find_coordinator import FindCoordinatorRequest
from kafka.protocol.metadata.metadata import MetadataRequest
from kafka.protocol.producer.transaction import InitProducerIdRequest

from headrace.connect.errors import RetriableError, TaskFailedError
from headrace.kafka.client_config import ClientConfig
from headrace.kafka.deadline import Clock, Deadline
from headrace.kafka.errors import Context, is_retriable, translated
from headrace.kafka.producer import Waiting
from headrace.kafka.wire.connection import (
    AnswerTooLargeError,
    LoginRefusedError,
    UnsupportedApiError,
    WireConnection,
    unresolvable,
)
from headrace.kafka.wire.settings import WireSettings, wire_settings
from headrace.kafka.wire.transaction_state import ProducerIdentity

_FIRST_PAUSE, _LONGEST_PAUSE = 0.02, 0.5
_REPORT_SECONDS = 1.0
# Versions of the requests. InitProducerId names its producer since version 3 (KIP-360); two-phase commits came
# after version 5.
_TAKE_VERSIONS: Final = (0, 4)
_PROVE_VERSIONS: Final = (3, 4)
_FIND_VERSIONS: Final = (1, 3)
_LIST_VERSIONS: Final = (0, 0)
_METADATA_VERSIONS: Final = (1, 9)
# Errors when another producer takes the id at the same moment: INVALID_PRODUCER_EPOCH, PRODUCER_FENCED.
_RIVALS: Final = (47, 90)
# The kind of coordinator that is looked up; the other kinds are for groups.
_TRANSACTION: Final = 1

_Address = tuple[str, int]
_Answer = TypeVar("_Answer")


class TransactionCoordinator:
    """Sends requests to the transaction coordinators of one cluster. Any thread may call; requests are serialised.

    *config* is a producer's; its own transactional id does not matter. Nothing is connected before the first call.
    Every call raises :class:`~headrace.connect.errors.RetriableError` when there was no answer before its deadline, and
    :class:`~headrace.connect.errors.TaskFailedError` for errors that no retry can resolve. *waiting* is called about
    once a second meanwhile; an exception from it ends the call.
    """

    def __init__(self, config: ClientConfig, *, clock: Clock = time.monotonic) -> None:
        self._config = config
        self._timeout_ms = int(config.transaction_timeout_seconds * 1000)
        self._clock = clock
        # Held for one request and its answer: a connection belongs to one thread at a time.
        self._lock = threading.Lock()
        self._connections: dict[_Address, WireConnection] = {}
        self._coordinators: dict[str, _Address] = {}
        self._reached: _Address | None = None

    @cached_property
    def _settings(self) -> WireSettings:
        return wire_settings(self._config.settings)

    def take(
        self, transactional_id: str, deadline: Deadline, *, waiting: Waiting | None = None
    ) -> ProducerIdentity:
        """Take *transactional_id* over from its current owner, whose open transaction is aborted."""
        doing = f"InitProducerId of {transactional_id!r}"
        return self._answered(
            lambda: self._init(transactional_id, None, deadline), doing, deadline, waiting
        )

    def prove(
        self, transactional_id: str, current: ProducerIdentity, deadline: Deadline
    ) -> ProducerIdentity:
        """Prove that *transactional_id* still has the identity *current*; returns the next one, which replaces it.

        A call whose answer was lost may be repeated. Raises :class:`~headrace.connect.errors.FencedError` when
        another producer has taken the id.
        """
        doing = f"InitProducerId of {transactional_id!r}, which proves whose it is"
        return self._answered(
            lambda: self._init(transactional_id, current, deadline), doing, deadline, None
        )

    def fence(
        self,
        transactional_ids: Collection[str],
        deadline: Deadline,
        *,
        waiting: Waiting | None = None,
    ) -> dict[str, ProducerIdentity]:
        """Fence every producer that uses one of *transactional_ids* now; returns the identities that these have got.

        On return their transactions have ended and their next call fails. When this raises, some may be
        fenced; fencing again is harmless.
        """
        taken = dict[str, ProducerIdentity]()
        left = list(dict.fromkeys(transactional_ids))
        while left:
            doing = f"the fencing of {left[0]!r}"
            self._answered(
                lambda: self._fence_each(left, taken, deadline), doing, deadline, waiting
            )
        return taken

    def transactional_ids(
        self, deadline: Deadline, *, waiting: Waiting | None = None
    ) -> frozenset[str] | None:
        """Every transactional id that the brokers list; ``None`` if they do not support that.

        They do since version 3.0 (KIP-664), for ids on which this client has Describe.
        """
        doing = "the list of transactional ids"
        try:
            return self._answered(lambda: self._listed(deadline), doing, deadline, waiting)
        except UnsupportedApiError:
            return None

    def close(self) -> None:
        """Close the connections; a later call makes new ones."""
        with self._lock:
            self._drop()

    def _answered(
        self,
        ask: Callable[[], _Answer],
        doing: str,
        deadline: Deadline,
        waiting: Waiting | None,
    ) -> _Answer:
        """What *ask* returns; retried while that can help."""
        pause, report_at = _FIRST_PAUSE, self._clock() + _REPORT_SECONDS
        # Outside of the loop: wrong settings are not an outage.
        settings = self._settings
        while True:
            try:
                with self._lock:
                    return ask()
            except _RefusedError as refused:
                if not refused.may_pass:
                    context = Context(doing=doing, transactional_id=refused.transactional_id)
                    raise translated(refused.error, context) from refused
                reason = refused.error.str()
            except (OSError, LoginRefusedError, AnswerTooLargeError) as error:
                with self._lock:
                    self._drop()
                if (final := unresolvable(error, doing, settings)) is not None:
                    raise final from error
                reason = str(error) or type(error).__name__
            if deadline.expired:
                raise RetriableError(f"Kafka did not answer {doing} in time: {reason}.")
            if waiting is not None and self._clock() >= report_at:
                waiting(doing)
                report_at = self._clock() + _REPORT_SECONDS
            time.sleep(deadline.remaining(pause))
            pause = min(2 * pause, _LONGEST_PAUSE)

    def _init(
        self, transactional_id: str, current: ProducerIdentity | None, deadline: Deadline
    ) -> ProducerIdentity:
        known = ProducerIdentity(-1, -1) if current is None else current
        request = InitProducerIdRequest(
            transactional_id=transactional_id,
            transaction_timeout_ms=self._timeout_ms,
            producer_id=known.producer_id,
            producer_epoch=known.epoch,
        )
        address = self._coordinator_of(transactional_id, deadline)
        versions = _TAKE_VERSIONS if current is None else _PROVE_VERSIONS
        try:
            answer = self._connected(address, deadline).ask(request, deadline, versions=versions)
        except UnsupportedApiError as error:
            raise TaskFailedError(
                f"The broker does not support the version of {error} that exactly-once needs. Use a broker of "
                "version 2.5 or newer."
            ) from error
        if answer.error_code != 0:
            # The coordinator may have moved to another broker.
            self._coordinators.pop(transactional_id, None)
            passing = _RIVALS if current is None else ()
            raise _RefusedError(answer.error_code, transactional_id, also_passing=passing)
        return ProducerIdentity(answer.producer_id, answer.producer_epoch)

    def _fence_each(
        self, left: list[str], taken: dict[str, ProducerIdentity], deadline: Deadline
    ) -> None:
        """Move as many of *left* as possible to *taken* now; raises why the first one cannot be fenced yet.

        Their transactions end in parallel.
        """
        first, refusal = left[0], None
        for each in list(left):
            try:
                taken[each] = self._init(each, None, deadline)
                left.remove(each)
            except _RefusedError as refused:
                if not refused.may_pass:
                    raise
                refusal = refusal or refused
        if refusal is not None and first in left:
            raise refusal

    def _listed(self, deadline: Deadline) -> frozenset[str]:
        found = set[str]()
        asked = MetadataRequest(topics=[], allow_auto_topic_creation=False)
        for broker in self._ask_any(asked, deadline, versions=_METADATA_VERSIONS).brokers:
            request = ListTransactionsRequest(state_filters=[], producer_id_filters=[])
            connection = self._connected((broker.host, broker.port), deadline)
            answer = connection.ask(request, deadline, versions=_LIST_VERSIONS)
            if answer.error_code != 0:
                raise _RefusedError(answer.error_code)
            found |= {each.transactional_id for each in answer.transaction_states}
        return frozenset(found)

    def _coordinator_of(self, transactional_id: str, deadline: Deadline) -> _Address:
        if transactional_id not in self._coordinators:
            request = FindCoordinatorRequest(key=transactional_id, key_type=_TRANSACTION)
            answer = self._ask_any(request, deadline, versions=_FIND_VERSIONS)
            if answer.error_code != 0:
                raise _RefusedError(answer.error_code, transactional_id)
            self._coordinators[transactional_id] = answer.host, answer.port
        return self._coordinators[transactional_id]

    def _ask_any(self, request: Any, deadline: Deadline, *, versions: tuple[int, int]) -> Any:  # noqa: ANN401 (the library has no common type)
        """Ask a connected broker, or else the first address that answers."""
        for connection in self._connections.values():
            return connection.ask(request, deadline, versions=versions)
        failure: OSError = ConnectionError("there are no addresses (bootstrap.servers)")
        # The address that worked last comes first.
        addresses = sorted(self._settings.addresses, key=lambda each: each != self._reached)
        for left, address in zip(range(len(addresses), 0, -1), addresses, strict=True):
            share = Deadline.after(deadline.remaining() / left, deadline.clock)
            try:
                connection = self._connected(address, share)
                self._reached = address
                return connection.ask(request, deadline, versions=versions)
            except ssl.SSLCertVerificationError:
                raise
            except OSError as error:
                self._drop()
                failure = error
        raise failure

    def _connected(self, address: _Address, deadline: Deadline) -> WireConnection:
        if address not in self._connections:
            self._connections[address] = WireConnection(*address, self._settings, deadline)
        return self._connections[address]

    def _drop(self) -> None:
        """Close the connections, and forget the coordinators' addresses."""
        for each in self._connections.values():
            each.abort()
        self._connections.clear()
        self._coordinators.clear()


class _RefusedError(Exception):
    """A broker's answer that is an error; it may be temporary where Java's clients would retry."""

    def __init__(
        self,
        code: int,
        transactional_id: str | None = None,
        *,
        also_passing: Collection[int] = (),
    ) -> None:
        self.error = KafkaError(code)
        self.transactional_id = transactional_id
        self.may_pass = is_retriable(self.error) or code in also_passing
        super().__init__(self.error.str())
