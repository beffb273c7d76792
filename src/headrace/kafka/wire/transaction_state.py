"""The states of a producer: its id and epoch, the sequences of its partitions, and what is in its open transaction.

Two rules of Kafka's transactions are kept here, so that no sender can forget them. The broker takes a request that arrives
after the end of a transaction for a part of the next one of the same epoch: after anything unanswered a transaction is
``DOUBTFUL``, and nothing but a new epoch leads out of that. And a partition's sequences have no gap within an epoch.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import Enum
from typing import Final, NamedTuple

from headrace.kafka.topic_partition import TopicPartition

FIRST_VERSION: Final = 1
"""The protocol of transactions in which a producer itself adds partitions and groups to its transaction (KIP-98)."""
SECOND_VERSION: Final = 2
"""The protocol in which they join by themselves, and the epoch rises with each transaction (KIP-890)."""

_SEQUENCES: Final = 1 << 31


class ProducerIdentity(NamedTuple):
    """The id and the epoch that the broker has given to a producer."""

    producer_id: int
    epoch: int


class Phase(Enum):
    """Where a producer is."""

    UNINITIALISED = "uninitialised"
    """It has no id yet, or needs a new epoch before anything else."""
    READY = "ready"
    """No transaction is open. A producer without transactions sends in this phase."""
    IN_TRANSACTION = "in transaction"
    ENDING = "ending"
    """The broker was asked to end the transaction."""
    DOUBTFUL = "doubtful"
    """Something was not answered: it may still arrive, or have been done."""
    ENDED = "ended"
    """The producer is of no more use: another one has its transactional id, or the broker refuses it for good."""


class Event(Enum):
    """What happens to a producer."""

    INITIALISED = "initialised"
    BEGUN = "begun"
    END_ASKED = "end asked"
    ENDED = "ended"
    SPOILT = "spoilt"
    """The transaction has ended, and sequences of its epoch were lost with it."""
    UNANSWERED = "unanswered"
    STOPPED = "stopped"


PHASES: Final[Mapping[Phase, Mapping[Event, Phase]]] = {
    Phase.UNINITIALISED: {
        Event.INITIALISED: Phase.READY,
        Event.UNANSWERED: Phase.DOUBTFUL,
        Event.STOPPED: Phase.ENDED,
    },
    Phase.READY: {
        Event.INITIALISED: Phase.READY,
        Event.BEGUN: Phase.IN_TRANSACTION,
        Event.UNANSWERED: Phase.DOUBTFUL,
        Event.STOPPED: Phase.ENDED,
    },
    Phase.IN_TRANSACTION: {
        Event.END_ASKED: Phase.ENDING,
        # Nothing of it has reached a broker.
        Event.ENDED: Phase.READY,
        Event.SPOILT: Phase.UNINITIALISED,
        Event.UNANSWERED: Phase.DOUBTFUL,
        Event.STOPPED: Phase.ENDED,
    },
    Phase.ENDING: {
        Event.ENDED: Phase.READY,
        Event.SPOILT: Phase.UNINITIALISED,
        Event.UNANSWERED: Phase.DOUBTFUL,
        Event.STOPPED: Phase.ENDED,
    },
    Phase.DOUBTFUL: {
        Event.INITIALISED: Phase.READY,
        Event.UNANSWERED: Phase.DOUBTFUL,
        Event.STOPPED: Phase.ENDED,
    },
    Phase.ENDED: {Event.STOPPED: Phase.ENDED},
}
"""Every phase, what may happen in it, and the phase after that."""


class IllegalTransitionError(Exception):
    """The producer was used in a way that its phase does not allow; nothing has changed."""


class TransactionState:
    """What a producer knows of itself. Each method raises :class:`IllegalTransitionError` in a phase that forbids it.

    *transactional_id* is ``None`` for a producer without transactions.
    """

    def __init__(self, transactional_id: str | None) -> None:
        self.transactional_id = transactional_id
        self.phase = Phase.UNINITIALISED
        self.version = FIRST_VERSION
        self.identity: ProducerIdentity | None = None
        """``None`` before the first initialisation. It is kept in doubt: a new epoch is asked for by it (KIP-360)."""
        self.is_started = False
        """Whether a broker may know of the open transaction; otherwise there is nothing to end."""
        self._sequences: dict[TopicPartition, int] = {}
        self._places: set[TopicPartition] = set()
        self._groups: set[str] = set()

    @property
    def is_transactional(self) -> bool:
        """Whether records are sent in transactions only."""
        return self.transactional_id is not None

    @property
    def needs_epoch(self) -> bool:
        """Whether a new epoch must be asked for before the next transaction."""
        return self.phase is Phase.UNINITIALISED and self.identity is not None

    def initialised(self, identity: ProducerIdentity, *, version: int = FIRST_VERSION) -> None:
        """The broker has given *identity*; *version* is that of its transactions. Sequences begin at 0."""
        self._happened(Event.INITIALISED)
        self.version = version
        self._renewed(identity)

    def begin(self) -> None:
        """Begin a transaction. The broker learns of it with its first partition or group."""
        self._happened(Event.BEGUN)

    def sequence(self, place: TopicPartition, count: int) -> int:
        """The sequence of the next *count* records for *place*, which must be in the transaction if there is one."""
        allowed = Phase.IN_TRANSACTION if self.is_transactional else Phase.READY
        self._demand(allowed, "records are sent")
        if self.is_transactional and place not in self._places:
            raise IllegalTransitionError(f"{place} is not in the transaction")
        found = self._sequences.get(place, 0)
        self._sequences[place] = (found + count) % _SEQUENCES
        return found

    def rewind(self, place: TopicPartition, sequence: int) -> None:
        """The records of *place* from *sequence* on were refused for good: the next ones have theirs."""
        self._demand(
            Phase.IN_TRANSACTION if self.is_transactional else Phase.READY, "a batch is dropped"
        )
        self._sequences[place] = sequence

    def has(self, place: TopicPartition) -> bool:
        """Whether records for *place* may be sent as far as the transaction is concerned."""
        return not self.is_transactional or place in self._places

    def join(self, places: Iterable[TopicPartition]) -> None:
        """*places* are in the transaction now; on version 2 from their first records on."""
        self._demand(Phase.IN_TRANSACTION, "partitions join")
        self._places.update(places)
        self.is_started = True

    def has_group(self, group: str) -> bool:
        """Whether offsets of *group* may be committed in the transaction."""
        return group in self._groups

    def join_group(self, group: str) -> None:
        """*group* is in the transaction now; on version 2 from its first offsets on."""
        self._demand(Phase.IN_TRANSACTION, "a group joins")
        self._groups.add(group)
        self.is_started = True

    def end(self) -> None:
        """The broker is asked to commit or to abort: nothing else is sent."""
        self._happened(Event.END_ASKED)

    def ended(self, identity: ProducerIdentity | None = None, *, spoilt: bool = False) -> None:
        """The transaction has ended; on version 2 the broker has answered with the next *identity*.

        *spoilt* says that sequences were given to records which the broker has not taken: then the next transaction
        needs a new epoch, whose sequences begin at 0. A new identity has one already.
        """
        needs_epoch = spoilt and identity is None
        self._happened(Event.SPOILT if needs_epoch else Event.ENDED)
        self._leave()
        if identity is not None:
            self._renewed(identity)

    def doubt(self) -> None:
        """Something was not answered. Nothing more may be sent until :meth:`initialised`."""
        self._happened(Event.UNANSWERED)
        self._leave()

    def stop(self) -> None:
        """The producer is of no more use."""
        self._happened(Event.STOPPED)
        self._leave()

    def _happened(self, event: Event) -> None:
        following = PHASES[self.phase].get(event)
        if following is None:
            raise IllegalTransitionError(
                f"{event.value!r} while the producer is {self.phase.value}"
            )
        self.phase = following

    def _demand(self, phase: Phase, what: str) -> None:
        if self.phase is not phase:
            raise IllegalTransitionError(
                f"{what} while the producer is {self.phase.value}, and not {phase.value}"
            )

    def _renewed(self, identity: ProducerIdentity) -> None:
        self.identity = identity
        self._sequences.clear()
        self._leave()

    def _leave(self) -> None:
        self._places.clear()
        self._groups.clear()
        self.is_started = False
