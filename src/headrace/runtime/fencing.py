"""Who may write for a connector: one driver, whose guard is proven, after every older writer was fenced.

Fencing keeps a task's process from writing once it has initialised its transactional id. A process that has not yet
cannot be fenced, and may belong to another worker's plan. So each driver takes the connector's guard, a transactional id
of its own, before it fences and reads offsets, and proves that it still has it after each of its processes has
initialised its id and before that process begins to write: whoever took the guard in between fences afterwards, and so
fences that process.
"""

from __future__ import annotations

import logging
import re
import threading
import time
from collections.abc import Callable, Collection
from typing import Final

from headrace.connect.errors import ConnectorFencedError, FencedError, ReplanError, RetriableError
from headrace.connect.task import Offsets
from headrace.kafka.deadline import Deadline
from headrace.kafka.producer import Waiting
from headrace.kafka.transaction_coordinator import ProducerIdentity
from headrace.observe.events import Committed
from headrace.offsets.connector_stores import OffsetSnapshot
from headrace.runtime.services import Coordinator, CopyWriter, RunSpec, Services
from headrace.storage.protocols import TaskCount
from headrace.task.work import SlotWork

# What is late is tried again; a coordinator ends first what was open.
_PATIENCE_SECONDS: Final = 15.0
# Of a proof: a slot waits for the answer.
_PROOF_SECONDS: Final = 10.0
# The broker's: it begins a new producer id after this one.
_LAST_EPOCH: Final = 32_766


def transactional_id(group_id: str, connector: str, task: int) -> str:
    """The id under which a task's slots write, as Kafka Connect names it (KIP-618). Pure."""
    return f"{group_id}-{connector}-{task}"


def secondary_id(group_id: str, connector: str) -> str:
    """The id under which offsets are copied to the worker's store. Pure."""
    return f"{group_id}-{connector}-secondary"


def tasks_ids(listed: Collection[str], group_id: str, connector: str) -> set[str]:
    """Those of *listed* that are a task's of *connector*, whoever has run it. Pure.

    The whole id counts: ``g-a-1-0`` is a task's of connector ``a-1``, and none of ``a``.
    """
    whole = re.compile(re.escape(f"{group_id}-{connector}-") + "[0-9]+")
    return {each for each in listed if whole.fullmatch(each)}


class Guard:
    """One driver's hold on one connector.

    The connector's own thread takes it; any thread proves it, one after the other. Once lost it stays lost: two
    drivers that took it from each other in turns would both get nowhere.
    """

    def __init__(self, coordinator: Coordinator, *, group_id: str, connector: str) -> None:
        self._coordinator = coordinator
        self._id = f"{group_id}-{connector}-driver"
        self._group_id = group_id
        self._connector = connector
        # Each proof gives the identity for the next one.
        self._proving = threading.Lock()
        self._identity: ProducerIdentity | None = None
        self._is_lost = False
        self._is_closed = False

    @property
    def is_lost(self) -> bool:
        """Whether another driver is known to have taken it."""
        return self._is_lost

    def hold(self, *, give_up: Callable[[], bool]) -> None:
        """Take it at the first call, and prove it at every later one; also once more after :meth:`close`.

        Raises :class:`~headrace.connect.errors.ConnectorFencedError` when another driver has taken it since, and
        :class:`~headrace.connect.errors.RetriableError` when Kafka does not answer in time or *give_up* says so.
        """
        self._is_closed = False
        if self._identity is not None:
            self.prove()
            return
        deadline = Deadline.after(_PATIENCE_SECONDS, time.monotonic)
        self._identity = self._coordinator.take(self._id, deadline, waiting=giving_up(give_up))

    def listed(self, *, give_up: Callable[[], bool]) -> frozenset[str] | None:
        """All transactional ids that the brokers know; ``None`` where they cannot list them. Raises as :meth:`fence`."""
        deadline = Deadline.after(_PATIENCE_SECONDS, time.monotonic)
        return self._coordinator.transactional_ids(deadline, waiting=giving_up(give_up))

    def fence(self, ids: Collection[str], *, give_up: Callable[[], bool]) -> None:
        """Make every producer of *ids* unable to write; raises ``RetriableError`` as :meth:`hold`."""
        deadline = Deadline.after(_PATIENCE_SECONDS, time.monotonic)
        self._coordinator.fence(ids, deadline, waiting=giving_up(give_up))

    def close(self) -> None:
        """Close the connections. Nothing is given back: the guard is taken, never released.

        Whoever asks for a proof afterwards, a process that outlived its driver, gets none.
        """
        with self._proving:
            self._is_closed = True
            self._coordinator.close()

    def prove(self, *, seconds: float = _PROOF_SECONDS) -> None:
        """Make sure that no other driver has taken it until now; raises as :meth:`hold`."""
        with self._proving:
            if self._identity is None:
                raise RetriableError(f"The guard of connector {self._connector} is not taken yet.")
            if self._is_closed:
                raise RetriableError(f"The driver of connector {self._connector} has ended.")
            if not self._is_lost:
                deadline = Deadline.after(seconds, time.monotonic)
                self._is_lost = not self._is_proven(self._identity, deadline)
        if self._is_lost:
            raise ConnectorFencedError(
                f"Another worker with group.id {self._group_id!r} has taken over connector {self._connector} (transactional "
                f"id {self._id!r}): it has started it, or has changed its offsets. So this worker writes nothing more for "
                "it; nothing is lost or sent twice. Run the connector in one worker only: stop it there and restart it "
                "here, or give one of the two another name, or its worker another group.id."
            )

    def _is_proven(self, current: ProducerIdentity, deadline: Deadline) -> bool:
        try:
            self._identity = self._coordinator.prove(self._id, current, deadline)
        except FencedError:
            return False
        # A broker that has forgotten the id (transactional.id.expiration.ms, a week) gives it to anyone who had it
        # once; a new producer id comes from an owner's proof only when the epochs of the old one are used up.
        is_same = self._identity.producer_id == current.producer_id
        return is_same or current.epoch >= _LAST_EPOCH


def giving_up(give_up: Callable[[], bool]) -> Waiting:
    """Ends a wait for Kafka when *give_up* says so, which is asked about once a second."""

    def waiting(waited_for: str) -> None:
        if give_up():
            raise RetriableError(f"Kafka did not answer {waited_for} before the stop.")

    return waiting


_log = logging.getLogger(__name__)

# How soon an idle connector learns that another worker runs it. A proof is a write of the transaction coordinator's.
_REPROOF_SECONDS = 60.0
_SHORT_PROOF_SECONDS = 2.0


class Ownership:
    """One connector's, used by its thread, but for :meth:`admit`. *dirty* while an old writer may still write.

    Without exactly-once there are no transactions, so no one is fenced, and there is no guard.
    """

    def __init__(
        self, spec: RunSpec, services: Services, *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._spec = spec
        self._services = services
        self._clock = clock
        self._guard = (
            Guard(services.coordinator(spec), group_id=services.group_id, connector=spec.name)
            if spec.exactly_once
            else None
        )
        self._has_taken_over = False
        self._copies: CopyWriter | None = None
        self._proven_at = clock()
        self.slots = min(spec.max_tasks, services.capacity.slots)
        # Whose tasks are not counted may have as many writers as there is room for.
        self._writers = self.slots if spec.enforces_max_tasks else services.capacity.slots
        self.dirty = True

    def take_over(self, *, give_up: Callable[[], bool]) -> None:
        """Fence; then put what others stored under bytes of their own under ours, which are all that slots write.

        Two forms of one offset would be left otherwise, and a reader that finds only the old one.
        """
        self.fence(give_up=give_up)
        self._services.offsets.keep_only(self._spec)
        offsets = self._services.offsets.of(self._spec)
        if offsets.foreign():
            # In this order: what another program writes in between is seen as a change.
            known = offsets.current()
            self.commit(offsets.foreign(), planned_from=known)
        # Whoever died between a commit and its copy has left the copy to us.
        offsets.catch_up()

    def fence(self, *, give_up: Callable[[], bool]) -> None:
        """Become, or remain, the connector's driver, and make every older writer unable to write.

        Raises :class:`~headrace.connect.errors.ConnectorFencedError` when another driver has taken over, and
        ``RetriableError`` when Kafka does not answer in time or *give_up* says so.
        """
        if self._guard is not None:
            self._guard.hold(give_up=give_up)
            self._guard.fence(self._ids_of_writers(self._guard, give_up), give_up=give_up)
            self._has_taken_over = True
            count = TaskCount(slots=self._writers)
            self._services.configs.put_task_count(self._spec.name, count)
            self._proven_at = self._clock()
        self.dirty = False

    def _ids_of_writers(self, guard: Guard, give_up: Callable[[], bool]) -> list[str]:
        """The ids of all tasks that may have left a writer: this driver's, and before that those of any other."""
        spec, group_id = self._spec, self._services.group_id
        stored = self._services.configs.task_count(spec.name)
        count = max(self._writers, 0 if stored is None else stored.slots)
        if self._has_taken_over:
            return [transactional_id(group_id, spec.name, task) for task in range(count)]
        count = max(count, spec.max_tasks)
        listed = guard.listed(give_up=give_up)
        if listed is None:
            _log.warning(
                "Connector %s: this Kafka cannot list transactional ids (it can since version 3.0), so only those of %d "
                "tasks are fenced. If a worker with more tasks has run it, make sure that it has ended.",
                spec.name,
                count,
            )
            listed = frozenset[str]()
        self._take_over_copies(give_up=give_up)
        own = {transactional_id(group_id, spec.name, task) for task in range(count)}
        return sorted(own | tasks_ids(listed, group_id, spec.name))

    def _take_over_copies(self, *, give_up: Callable[[], bool]) -> None:
        """Fence whoever has copied the connector's offsets to the worker's store, and copy them from now on."""
        name, secondary = self._spec.name, self._services.secondary
        if secondary is None:
            return
        secondary.fence(name, is_used=self._spec.own_offsets is not None, give_up=give_up)
        self._close_copies()
        self._copies = secondary.writer(name, self.prove)
        self._services.offsets.copies.write_with(name, self._copies.put)

    def admit(
        self,
        work: SlotWork,
        *,
        planned_from: OffsetSnapshot,
        has_begun: bool,
        siblings_have: bool,
    ) -> None:
        """Let the process of *work*, which has initialised its transactional id, write.

        Called by the channel's threads. Raises :class:`~headrace.connect.errors.ReplanError` when offsets that it was
        planned from have changed before it has begun: by an owner without a guard, such as a Java worker. Of polled
        tasks all offsets count, until one of them has begun: what it commits looks the same.
        """
        self.prove()
        if self._guard is None or has_begun or (siblings_have and not work.planned):
            return
        known = planned_from.known()
        now = self._services.offsets.of(self._spec).current().known()
        if now is known:
            return
        if work.planned:
            has_moved = any(
                known.get(split.partition) != now.get(split.partition) for split in work.splits
            )
        else:
            has_moved = dict(known.items()) != dict(now.items())
        if has_moved:
            raise ReplanError(_MOVED)

    def commit(self, offsets: Offsets, *, planned_from: OffsetSnapshot) -> None:
        """Commit offsets without records, while no slot runs; *planned_from* are those that they were made from.

        Raises :class:`~headrace.connect.errors.ReplanError` when these have changed since.
        """

        def still_ours() -> None:
            self.prove()
            known = planned_from.known()
            now = self._services.offsets.of(self._spec).current().known()
            # One that is as it shall be has been removed from the worker's store already.
            if any(now.get(each) not in (known.get(each), new) for each, new in offsets.items()):
                raise ReplanError(_MOVED)

        # What a failure leaves open is ended by fencing, before offsets are read again.
        self.dirty = True
        self._services.commit_offsets(self._spec, offsets, still_ours)
        self.dirty = False
        self._services.emit(Committed(connector=self._spec.name, offsets=len(offsets)))

    def prove(self) -> None:
        """Raise ``ConnectorFencedError`` when another driver has taken over; ``RetriableError`` without an answer."""
        if self._guard is not None:
            self._guard.prove()
            self._proven_at = self._clock()

    def prove_if_due(self) -> None:
        """As :meth:`prove`, about once a minute, and no more than two seconds: a broker that is away is asked later.

        Called by idle rounds and while a micro-batch is open. It also keeps the broker from forgetting the guard.
        """
        if self._guard is None or self._clock() < self._proven_at + _REPROOF_SECONDS:
            return
        self._proven_at = self._clock()
        try:
            self._guard.prove(seconds=_SHORT_PROOF_SECONDS)
        except RetriableError as error:
            _log.debug("%s", error)

    def let_go(self) -> None:
        """See to it that nothing of this connector can write any more.

        Gives up after the time that slots get to end; the next start does it then.
        """
        try:
            self._settle_copies()
            if self.dirty and not self._is_lost:
                deadline = Deadline.after(self._services.timing.grace, self._clock)
                self.fence(give_up=lambda: deadline.expired)
        except ConnectorFencedError as error:
            # Who has taken over has fenced.
            _log.warning("%s", error)
        finally:
            self.close()

    def close(self) -> None:
        """Close the connections to Kafka."""
        self._close_copies()
        if self._guard is not None:
            self._guard.close()

    def _close_copies(self) -> None:
        if self._copies is not None:
            self._copies.close()

    @property
    def _is_lost(self) -> bool:
        return self._guard is not None and self._guard.is_lost

    def _settle_copies(self) -> None:
        seconds = self._services.timing.grace
        if not self._services.offsets.of(self._spec).settle(seconds):
            _log.warning(
                "Connector %s has ended before its last offsets were copied to the worker's. They are in its own "
                "topic (offsets.storage.topic); its next start copies them.",
                self._spec.name,
            )


_MOVED = "The stored offsets are not those that were planned from: another program has written some. They are read again."
