"""Ownership of a connector: only one driver may write for it, after it has taken the guard and fenced all older writers.

Fencing keeps a zombie, a task's process that was replaced, from writing once that process has initialised its
transactional id. A process that has not done so yet cannot be fenced, and may belong to another worker's plan. So each
driver takes the connector's guard, a transactional id of its own, before it fences and reads offsets. After each of its
processes has initialised its id, and before that process begins to write, the driver proves that it still has the
guard: a driver that took the guard in between fences afterwards, and so fences that process.

Processes with the wire's producer do not initialise their ids: the driver does so for each plan, before it reads the
offsets that the plan is executed from, and hands the identities over. So nothing lies between a plan and its first write
in which a process could take its id from a newer owner, and it is fenced from its first request on.
"""

from __future__ import annotations

import logging
import re
import threading
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from typing import Final

from headrace.connect.connector import PlannedConnector
from headrace.connect.errors import ConnectorFencedError, FencedError, ReplanError, RetriableError
from headrace.connect.task import Offsets
from headrace.kafka.client_config import producer_config
from headrace.kafka.deadline import Deadline
from headrace.kafka.producer import Waiting
from headrace.kafka.transaction_coordinator import TransactionCoordinator
from headrace.kafka.wire.transaction_state import ProducerIdentity
from headrace.observe.events import Committed
from headrace.offsets.store import OffsetSnapshot
from headrace.offsets.target import OffsetTopic, TargetGroup
from headrace.runtime.services import Coordinator, RunSpec, SecondaryOffsetStore, Services
from headrace.storage.protocols import TaskCount
from headrace.task.slot_work import SlotWork

_log = logging.getLogger(__name__)

PATIENCE_SECONDS: Final = 15.0
"""How long a driver waits for Kafka before it reports that and retries; a coordinator first ends open transactions."""
# Shorter, because a slot waits for the answer.
_PROOF_SECONDS: Final = 10.0
# The broker's limit: after this epoch it assigns a new producer id.
_LAST_EPOCH: Final = 32_766
# How soon an idle connector notices that another worker runs it. Each proof is a write of the transaction coordinator.
_REPROOF_SECONDS: Final = 60.0
_SHORT_PROOF_SECONDS: Final = 2.0
_MOVED: Final = "The stored offsets have changed since this work was planned: another program has written some. They are read again."


def transactional_id(group_id: str, connector: str, task: int) -> str:
    """The transactional id of a task's slots, named as in Kafka Connect (KIP-618). Pure."""
    return f"{group_id}-{connector}-{task}"


def secondary_id(group_id: str, connector: str) -> str:
    """The transactional id with which secondary offsets are written to the worker's store. Pure."""
    return f"{group_id}-{connector}-secondary"


def tasks_ids(listed: Collection[str], group_id: str, connector: str) -> set[str]:
    """Those of *listed* that belong to tasks of *connector*, whichever worker ran it. Pure.

    The whole id is matched: ``g-a-1-0`` belongs to a task of connector ``a-1``, and not of ``a``.
    """
    whole = re.compile(re.escape(f"{group_id}-{connector}-") + "[0-9]+")
    return {each for each in listed if whole.fullmatch(each)}


def coordinator_of(spec: RunSpec) -> Coordinator:
    """A client for the transaction coordinators of the cluster that the connector's tasks write to."""
    return TransactionCoordinator(producer_config(spec.producer))


def fence_tasks(spec: RunSpec, services: Services, *, count: int) -> None:
    """Make producers of the connector's first *count* tasks unable to write, on behalf of a worker that leaves it to this one.

    Raises ``RetriableError`` when Kafka does not answer in time.
    """
    deadline = Deadline.after(PATIENCE_SECONDS, time.monotonic)
    ids = [transactional_id(services.group_id, spec.name, task) for task in range(count)]
    with closing(services.coordinator(spec)) as coordinator:
        coordinator.fence(ids, deadline)


class Guard:
    """One driver's hold on one connector.

    The connector's own thread takes it; any thread may prove it, one after the other. Once lost it stays lost: two
    drivers that took it from each other in turns would both make no progress.
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
        """Take it at the first call, and prove it at every later one; reopens it after :meth:`close`.

        Raises :class:`~headrace.connect.errors.ConnectorFencedError` when another driver has taken it since, and
        :class:`~headrace.connect.errors.RetriableError` when Kafka does not answer in time or *give_up* says so.
        """
        self._is_closed = False
        if self._identity is not None:
            self.prove()
            return
        deadline = Deadline.after(PATIENCE_SECONDS, time.monotonic)
        self._identity = self._coordinator.take(self._id, deadline, waiting=giving_up(give_up))

    def listed(self, *, give_up: Callable[[], bool]) -> frozenset[str] | None:
        """All transactional ids that the brokers know; ``None`` if they cannot list them. Raises as :meth:`fence`."""
        deadline = Deadline.after(PATIENCE_SECONDS, time.monotonic)
        return self._coordinator.transactional_ids(deadline, waiting=giving_up(give_up))

    def fence(self, ids: Collection[str], *, give_up: Callable[[], bool]) -> None:
        """Make every producer of *ids* unable to write; raises ``RetriableError`` as :meth:`hold`."""
        deadline = Deadline.after(PATIENCE_SECONDS, time.monotonic)
        self._coordinator.fence(ids, deadline, waiting=giving_up(give_up))

    def identities(
        self, ids: Collection[str], *, give_up: Callable[[], bool]
    ) -> Mapping[str, ProducerIdentity]:
        """The identity with which one producer of each of *ids* may begin; earlier producers are fenced.

        Each is proven (KIP-360) after all were taken. Raises ``ConnectorFencedError`` or ``RetriableError`` as :meth:`hold`.
        """
        self.prove()
        deadline = Deadline.after(PATIENCE_SECONDS, time.monotonic)
        taken = self._coordinator.fence(ids, deadline, waiting=giving_up(give_up))
        proven = dict[str, ProducerIdentity]()
        for each, identity in taken.items():
            following = self._renewed(each, identity, deadline)
            if following is None:
                self.prove()
                raise RetriableError(
                    f"Another program has taken the transactional id {each!r} of connector {self._connector}, which this "
                    "worker has just taken, and does not have the connector's guard. It is taken again."
                )
            proven[each] = following
        # A driver that was suspended meanwhile may have taken the ids of a newer one's slots; it ends here.
        self.prove()
        return proven

    def close(self) -> None:
        """Close the connections. A guard is only taken over by another driver, never released.

        Later proofs fail, such as for a process that outlived its driver.
        """
        with self._proving:
            self._is_closed = True
            self._coordinator.close()

    def prove(self, *, seconds: float = _PROOF_SECONDS) -> None:
        """Verify that no other driver has taken it so far; raises as :meth:`hold`."""
        with self._proving:
            if self._identity is None:
                raise RetriableError(f"The guard of connector {self._connector} is not taken yet.")
            if self._is_closed:
                raise RetriableError(f"The driver of connector {self._connector} has ended.")
            if not self._is_lost:
                deadline = Deadline.after(seconds, time.monotonic)
                following = self._renewed(self._id, self._identity, deadline)
                self._is_lost = following is None
                self._identity = following or self._identity
        if self._is_lost:
            raise ConnectorFencedError(
                f"Another worker with group.id {self._group_id!r} has taken over connector {self._connector} (transactional "
                f"id {self._id!r}): it has started the connector or changed its offsets. This worker writes nothing more for "
                "it; nothing is lost or sent twice. Run the connector in one worker only: stop it there and restart it "
                "here, or give one of the two another name, or its worker another group.id. Where both are workers of one group "
                "('headrace worker'), the connector was assigned to the other one, and nothing is to be done."
            )

    def _renewed(
        self, transactional_id: str, current: ProducerIdentity, deadline: Deadline
    ) -> ProducerIdentity | None:
        """The next identity of the owner of *transactional_id*; ``None`` when it does not have *current* any more."""
        try:
            following = self._coordinator.prove(transactional_id, current, deadline)
        except FencedError:
            return None
        # A broker that has forgotten the id (transactional.id.expiration.ms, a week) accepts any former owner, with a
        # new producer id. The current owner gets a new producer id only when the epochs of the old one are used up.
        is_same = following.producer_id == current.producer_id
        return following if is_same or current.epoch >= _LAST_EPOCH else None


def giving_up(give_up: Callable[[], bool]) -> Waiting:
    """A callback that ends a wait for Kafka when *give_up* returns true; it is called about once a second."""

    def waiting(waited_for: str) -> None:
        if give_up():
            raise RetriableError(f"Kafka did not answer {waited_for} before the stop.")

    return waiting


class Ownership:
    """This driver's ownership of one connector. Used by the connector's thread, except :meth:`check_write` and :meth:`prove`.

    *tasks* is how many a planned connector has, and *slots* how many of them may run here at once.
    *dirty* is set while an old writer may still write. Without exactly-once there are no transactions, so there is
    no fencing and no guard.
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
        # Since it was taken over, some slot may have left offsets in a transaction that was aborted.
        self._may_have_aborted = False
        self._copies: SecondaryOffsetStore | None = None
        self._proven_at = clock()
        published = None
        if isinstance(spec.connector, PlannedConnector):
            published = services.published_tasks(spec.name)
        # What others know of it stays when another worker runs it, whatever that can run at once.
        self.tasks = published or min(spec.max_tasks, services.capacity.slots)
        self.slots = min(self.tasks, spec.max_tasks, services.capacity.slots)
        # Without tasks.max.enforce a connector may have as many writers as there are slots.
        self._writers = self.slots if spec.enforces_max_tasks else services.capacity.slots
        self.dirty = True

    def take_over(self, *, give_up: Callable[[], bool]) -> None:
        """Fence; then rewrite offsets that others stored under differently encoded keys to headrace's encoding.

        Slots write only that encoding. Otherwise one offset would be stored in two forms, and a reader might find only the
        old one. Raises when others use the connector's offset store as something else.
        """
        self.fence(give_up=give_up)
        self._services.offsets.keep_only(self._spec)
        offsets = self._services.offsets.of(self._spec)
        offsets.refuse_other_users()
        if offsets.differently_encoded():
            # In this order, a write of another program in between is seen as a change.
            known = offsets.current()
            self.commit(offsets.differently_encoded(), planned_from=known)
        # A driver that died between a commit and its copy has left that copy to be made.
        offsets.catch_up()

    def fence(self, *, give_up: Callable[[], bool]) -> None:
        """Become, or remain, the connector's driver, and make every older writer unable to write.

        Raises :class:`~headrace.connect.errors.ConnectorFencedError` when another driver has taken over, and
        ``RetriableError`` when Kafka does not answer in time, *give_up* says so, or this worker's membership does not hold.
        """
        self._services.require_membership()
        if self._guard is not None:
            self._guard.hold(give_up=give_up)
            self._guard.fence(self._ids_of_writers(self._guard, give_up), give_up=give_up)
            self._write_copies()
            self._may_have_aborted |= self._has_taken_over and self.dirty
            self._has_taken_over = True
            count = TaskCount(slots=self._writers)
            self._services.task_counts.put_task_count(self._spec.name, count)
            self._proven_at = self._clock()
        self.dirty = False

    def handed_over(
        self, works: Sequence[SlotWork], *, give_up: Callable[[], bool]
    ) -> Sequence[SlotWork]:
        """*works*, each with the identity of its producer where that is the wire's; older producers are fenced.

        To be called for each plan, and before the offsets are read that its slots begin from: an identity is good for one
        producer only, and that may leave a transaction open. Raises as :meth:`fence`.
        """
        if self._guard is None or not isinstance(self._spec.offsets, TargetGroup):
            return works
        ids = {each.transactional_id: each for each in works if each.transactional_id is not None}
        assert len(ids) == len(works), "exactly once, each slot has an id of its own"
        found = self._guard.identities(ids, give_up=give_up)
        self._proven_at = self._clock()
        return [replace(work, identity=found[each]) for each, work in ids.items()]

    def _ids_of_writers(self, guard: Guard, give_up: Callable[[], bool]) -> list[str]:
        """The ids of all tasks that may have left a writer: this driver's, and at the first call those of any other."""
        spec, group_id = self._spec, self._services.group_id
        stored = self._services.task_counts.task_count(spec.name)
        count = max(self._writers, 0 if stored is None else stored.slots)
        if self._has_taken_over:
            return [transactional_id(group_id, spec.name, task) for task in range(count)]
        count = max(count, spec.max_tasks)
        listed = guard.listed(give_up=give_up)
        if listed is None:
            _log.warning(
                "Connector %s: this Kafka cannot list transactional ids (supported since version 3.0), so only those of "
                "%d tasks are fenced. If a worker with more tasks has run the connector, make sure that it has ended.",
                spec.name,
                count,
            )
            listed = frozenset[str]()
        self._take_over_copies(give_up=give_up)
        own = {transactional_id(group_id, spec.name, task) for task in range(count)}
        return sorted(own | tasks_ids(listed, group_id, spec.name))

    def _take_over_copies(self, *, give_up: Callable[[], bool]) -> None:
        """Fence older writers of the connector's secondary offsets, and make one for this driver."""
        name, secondary = self._spec.name, self._services.secondary
        if secondary is None:
            return
        secondary.fence(name, is_used=self._spec.offsets_topic is not None, give_up=give_up)
        self._close_copies()
        self._copies = secondary.writer(name, self.prove, by_wire=self._spec.sends_by_wire)

    def _write_copies(self) -> None:
        """Write the connector's secondary offsets, also again after :meth:`close`."""
        if self._copies is None:
            return
        own = self._spec.offsets_topic
        # If the connector has no topic of its own any more, nothing else has the last offsets of that topic.
        self._services.offsets.copies.write_with(
            self._spec.name, self._copies.put, keep=own is None or own.is_same_named
        )

    def check_write(
        self,
        work: SlotWork,
        *,
        planned_from: OffsetSnapshot,
        was_allowed: bool,
        siblings_were: bool,
    ) -> None:
        """Raise unless the process of *work*, which has initialised its transactional id, may write.

        Called by the channel's threads. Raises :class:`~headrace.connect.errors.ReplanError` when offsets that it was
        planned from have changed before it has begun, by an owner without a guard such as a Java worker. For polled
        tasks all offsets of the connector are compared, until one of the tasks has begun: its commits look the same.
        """
        self.prove()
        if self._guard is None or was_allowed or (siblings_were and not work.planned):
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
        """Commit offsets without records, while no slot runs; they were derived from *planned_from*.

        Raises :class:`~headrace.connect.errors.ReplanError` when the stored offsets have changed since.
        """

        def still_ours() -> None:
            self.prove()
            known = planned_from.known()
            now = self._services.offsets.of(self._spec).current().known()
            # An offset that already has its new value was removed from the worker's store before.
            if any(now.get(each) not in (known.get(each), new) for each, new in offsets.items()):
                raise ReplanError(_MOVED)

        # A transaction that a failure leaves open is ended by fencing, before offsets are read again.
        self.dirty = True
        self._services.commit_offsets(self._spec, offsets, still_ours)
        self.dirty = False
        self._services.emit(Committed(connector=self._spec.name, offsets=len(offsets)))

    def prove(self) -> None:
        """Raise ``ConnectorFencedError`` when another driver has taken over.

        Raises ``RetriableError`` without an answer, and while this worker's membership does not hold.
        """
        self._services.require_membership()
        if self._guard is not None:
            self._guard.prove()
            self._proven_at = self._clock()

    def prove_if_due(self) -> None:
        """As :meth:`prove`, about once a minute and for at most two seconds; if a broker is away, it is retried later.

        Called in idle rounds and while a micro-batch is open. It also keeps the broker from forgetting the guard.
        Raises ``RetriableError`` at once while this worker's membership does not hold.
        """
        self._services.require_membership()
        if self._guard is None or self._clock() < self._proven_at + _REPROOF_SECONDS:
            return
        self._proven_at = self._clock()
        try:
            self._guard.prove(seconds=_SHORT_PROOF_SECONDS)
        except RetriableError as error:
            _log.debug("%s", error)

    def release(self) -> None:
        """Make sure that nothing of this connector can write any more, settle its offsets, and close.

        Gives up after the grace period of slots; the next start fences then.
        """
        try:
            self._settle_copies()
            if self.dirty and not self._is_lost:
                deadline = Deadline.after(self._services.timing.grace, self._clock)
                self.fence(give_up=lambda: deadline.expired)
            if self._may_have_aborted and not self._is_lost:
                self._settle_offsets()
        except ConnectorFencedError as error:
            # The driver that has taken over has fenced.
            _log.warning("%s", error)
        finally:
            self.close()

    def _settle_offsets(self) -> None:
        """Write what is committed again, behind what was aborted.

        A worker of Kafka Connect without exactly-once takes the last offset that was written for the newest, committed or not.
        """
        if isinstance(self._spec.offsets, OffsetTopic):
            committed = self._services.offsets.of(self._spec).current()
            if known := committed.known():
                self.commit(known, planned_from=committed)

    def close(self) -> None:
        """Close the connections to Kafka."""
        self._close_copies()
        if self._guard is not None:
            self._guard.close()

    def _close_copies(self) -> None:
        if self._copies is not None:
            self._services.offsets.copies.ended(self._spec.name, self._copies.put)
            self._copies.close()

    @property
    def _is_lost(self) -> bool:
        return self._guard is not None and self._guard.is_lost

    def _settle_copies(self) -> None:
        seconds = self._services.timing.grace
        if not self._services.offsets.of(self._spec).settle(seconds):
            _log.warning(
                "Connector %s has ended before its last offsets were copied to the worker's offset store. They are in "
                "its own topic (offsets.storage.topic); its next start copies them.",
                self._spec.name,
            )
