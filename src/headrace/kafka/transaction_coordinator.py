"""Requests to transaction coordinators that the client library has no call for (KIP-360, KIP-664)."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection
from typing import Final, TypeVar

from confluent_kafka import KafkaError
from kafka.protocol.admin.transactions import ListTransactionsRequest
from kafka.protocol.metadata.find_coordinator import FindCoordinatorRequest
from kafka.protocol.metadata.metadata import MetadataRequest

from headrace.connect.errors import RetriableError, TaskFailedError
from headrace.kafka.client_config import ClientConfig
from headrace.kafka.deadline import Deadline
from headrace.kafka.errors import Context, is_retriable, translated
from headrace.kafka.producer import Waiting
from headrace.kafka.wire.cluster import Cluster
from headrace.kafka.wire.connection import UnsupportedApiError
from headrace.kafka.wire.settings import wire_settings
from headrace.kafka.wire.transaction_requests import (
    RENEW_VERSIONS,
    TAKE_VERSIONS,
    init_producer_id,
)
from headrace.kafka.wire.transaction_state import ProducerIdentity

_LISTING: Final = "the list of transactional ids"
# Versions of the requests.
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

    def __init__(self, config: ClientConfig) -> None:
        self._config = config
        self._timeout_ms = int(config.transaction_timeout_seconds * 1000)
        # Held for one request and its answer: a connection belongs to one thread at a time.
        self._lock = threading.Lock()
        self._cluster: Cluster | None = None
        self._coordinators: dict[str, _Address] = {}

    def take(
        self, transactional_id: str, deadline: Deadline, *, waiting: Waiting | None = None
    ) -> ProducerIdentity:
        """Take *transactional_id* over from its current owner, whose open transaction is aborted."""
        doing = f"InitProducerId of {transactional_id!r}"
        return self._retried(
            lambda cluster: self._init(cluster, transactional_id, None, deadline),
            doing,
            deadline,
            waiting,
        )

    def prove(
        self, transactional_id: str, current: ProducerIdentity, deadline: Deadline
    ) -> ProducerIdentity:
        """Prove that *transactional_id* still has the identity *current*; returns the next one, which replaces it.

        A call whose answer was lost may be repeated. Raises :class:`~headrace.connect.errors.FencedError` when
        another producer has taken the id.
        """
        doing = f"InitProducerId of {transactional_id!r} (which proves whose it is)"
        return self._retried(
            lambda cluster: self._init(cluster, transactional_id, current, deadline),
            doing,
            deadline,
            None,
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
            self._retried(
                lambda cluster: self._fence_each(cluster, left, taken, deadline),
                doing,
                deadline,
                waiting,
            )
        return taken

    def transactional_ids(
        self, deadline: Deadline, *, waiting: Waiting | None = None
    ) -> frozenset[str] | None:
        """Every transactional id that the brokers list; ``None`` if they do not support that.

        They do since version 3.0 (KIP-664), for ids on which this client has Describe.
        """
        return self._retried(
            lambda cluster: _listed(cluster, deadline), _LISTING, deadline, waiting
        )

    def close(self) -> None:
        """Close the connections; a later call makes new ones."""
        with self._lock:
            if self._cluster is not None:
                self._cluster.close()

    def _init(
        self,
        cluster: Cluster,
        transactional_id: str,
        current: ProducerIdentity | None,
        deadline: Deadline,
    ) -> ProducerIdentity:
        request = init_producer_id(transactional_id, self._timeout_ms, current)
        doing = f"InitProducerId of {transactional_id!r}"
        versions = TAKE_VERSIONS if current is None else RENEW_VERSIONS
        try:
            address = self._coordinator_of(cluster, transactional_id, deadline)
            answer = cluster.attempt_at(address, request, deadline, versions=versions)
            passing = _RIVALS if current is None else ()
            _raise_error(answer.error_code, doing, transactional_id, passing=passing)
        except UnsupportedApiError as error:
            raise TaskFailedError(
                f"The broker does not support the version of {error} that exactly-once needs. Use a broker of "
                "version 2.5 or newer."
            ) from error
        except Exception:
            # The coordinator may have moved to another broker.
            self._coordinators.pop(transactional_id, None)
            raise
        return ProducerIdentity(answer.producer_id, answer.producer_epoch)

    def _fence_each(
        self,
        cluster: Cluster,
        left: list[str],
        taken: dict[str, ProducerIdentity],
        deadline: Deadline,
    ) -> None:
        """Move as many of *left* as possible to *taken* now; raises why the first one cannot be fenced yet.

        Their transactions end in parallel.
        """
        first, refusal = left[0], None
        for each in list(left):
            try:
                taken[each] = self._init(cluster, each, None, deadline)
                left.remove(each)
            except RetriableError as error:
                refusal = refusal or error
        if refusal is not None and first in left:
            raise refusal

    def _coordinator_of(
        self, cluster: Cluster, transactional_id: str, deadline: Deadline
    ) -> _Address:
        if transactional_id not in self._coordinators:
            request = FindCoordinatorRequest(key=transactional_id, key_type=_TRANSACTION)
            answer = cluster.attempt_any(request, deadline, versions=_FIND_VERSIONS)
            doing = f"the search for the coordinator of {transactional_id!r}"
            _raise_error(answer.error_code, doing, transactional_id)
            self._coordinators[transactional_id] = answer.host, answer.port
        return self._coordinators[transactional_id]

    def _retried(
        self,
        attempt: Callable[[Cluster], _Answer],
        doing: str,
        deadline: Deadline,
        waiting: Waiting | None,
    ) -> _Answer:
        def locked() -> _Answer:
            with self._lock:
                return attempt(cluster)

        with self._lock:
            cluster = self._cluster = self._cluster or Cluster(wire_settings(self._config.settings))
        return cluster.retried(doing, deadline, locked, waiting=waiting)


def _raise_error(
    code: int, doing: str, transactional_id: str | None = None, *, passing: Collection[int] = ()
) -> None:
    """Raise for an answer that is an error: ``RetriableError`` where Java's clients would retry, too."""
    if code == 0:
        return
    error = KafkaError(code)
    if is_retriable(error) or code in passing:
        raise RetriableError(error.str())
    raise translated(error, Context(doing=doing, transactional_id=transactional_id))


def _listed(cluster: Cluster, deadline: Deadline) -> frozenset[str] | None:
    found = set[str]()
    asked = MetadataRequest(topics=[], allow_auto_topic_creation=False)
    brokers = cluster.attempt_any(asked, deadline, versions=_METADATA_VERSIONS).brokers
    request = ListTransactionsRequest(state_filters=[], producer_id_filters=[])
    for broker in brokers:
        address = broker.host, broker.port
        try:
            answer = cluster.attempt_at(address, request, deadline, versions=_LIST_VERSIONS)
        except UnsupportedApiError:
            return None
        _raise_error(answer.error_code, _LISTING)
        found |= {each.transactional_id for each in answer.transaction_states}
    return frozenset(found)
