"""The coordination of a worker of a group: the group's leader says what it runs, and alone changes the cluster."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from functools import partial
from typing import Final, TypeVar

from headrace.connect.errors import ConnectError, RetriableError
from headrace.herder.answers import TargetState, WorkerInfo
from headrace.herder.coordination import HerderParts, settle_changes
from headrace.herder.errors import (
    NO_LEADER,
    ConflictError,
    ElsewhereError,
    NotLeadingError,
    RequestError,
    ServerError,
)
from headrace.herder.group import GroupMember, GroupSettings, GroupStorage, worker_name
from headrace.herder.group_protocol import (
    UNREACHABLE_OFFSET,
    Assignment,
    GroupFormatError,
    MemberFlag,
    ProtocolVersion,
)
from headrace.herder.group_role import WorkerRole
from headrace.herder.group_view import elsewhere, infos, members_in
from headrace.herder.incomplete_connectors import IncompleteConnectors
from headrace.herder.internal_requests import InternalRequest, SignedPeers, quiet_request
from headrace.herder.services import KafkaServices
from headrace.herder.statuses import HerderStatuses
from headrace.herder.wakeup import Wakeup
from headrace.kafka.deadline import Clock, Deadline, Reminder
from headrace.kafka.membership import GroupMembership, GroupRole, Joined
from headrace.observe.events import EventListener, Rebalanced, Rebalancing
from headrace.observe.log_format import in_log_context
from headrace.offsets.connector_stores import NamedConnector
from headrace.runtime.fencing import fence_tasks
from headrace.runtime.runs import LEAVE_SECONDS
from headrace.storage.protocols import StoredConnector

_log = logging.getLogger(__name__)
_Answer = TypeVar("_Answer")
_LOOK_SECONDS: Final = 1.0
_ALIVE_SECONDS: Final = 1.0
_JOIN_SECONDS: Final = 0.5
_RETRY_SECONDS: Final = 1.0
_LEAVE_SECONDS: Final = 5.0
_CHECK_SECONDS: Final = 300.0
_DESCRIBE_SECONDS: Final = 10.0
_SETTLE_SECONDS: Final = 30.0
_REFRESH_SECONDS: Final = 15.0
_READ_SECONDS: Final = 5.0
# How soon something that has been written elsewhere is looked for.
_ARRIVING_SECONDS: Final = 0.05


class _Due:
    """When something is to be done that is done again and again, and when this worker arrives at the latest."""

    def __init__(self, now: float) -> None:
        self.check = now + _CHECK_SECONDS
        self.refresh = now + _REFRESH_SECONDS
        self.settle = now + _SETTLE_SECONDS
        self.arrival = now
        self.alive = now


class Distributed:
    """A :class:`~headrace.herder.coordination.Coordination`, with a thread of its own that joins the group and follows its topics.

    *storage* is asked for once Kafka has been reached. *member* makes the membership, which has not joined, from what it asks and the
    function that wakes this one. *peers* are the other workers, as this one asks them. *check* raises ``ConfigError`` when the topics
    lose data; it is called every five minutes.
    """

    def __init__(
        self,
        parts: HerderParts,
        settings: GroupSettings,
        storage: Callable[[], GroupStorage],
        member: Callable[[GroupRole, Callable[[], None]], GroupMembership],
        *,
        peers: SignedPeers,
        check: Callable[[], None] = lambda: None,
        clock: Clock = time.monotonic,
    ) -> None:
        self._peers = peers
        self._check = check
        self._parts = parts
        self._settings = settings
        self._storage = storage
        self._clock = clock
        self._woken = Wakeup()
        self._role = WorkerRole(
            parts, settings, storage, clock, member_id=lambda: self._membership.member_id
        )
        self._membership = member(self._role, self._woken.set)
        self._is_ready = threading.Event()
        self._is_open = threading.Event()
        self._is_closed = self._is_to_end = self._is_hurried = False
        self._joins_since: float | None = None
        self._flags_guard = threading.Lock()
        self._giving_up = frozenset[str]()
        self._kafka: KafkaServices | None = None
        self._is_leading = False
        # The thread that finishes what an earlier leader has left: it alone may change the cluster by then.
        self._settles_on: int | None = None
        self._join_at: float | None = None
        self._due = _Due(clock())
        self._reminder, self._noted = Reminder(), ""
        self._problem: ConnectError | None = None
        self._unreadable: ConnectError | None = None
        self._config_offset = -1
        self._settling: Future[None] | None = None
        self._shown_idle: Mapping[str, str] = {}
        # Connectors as they were when they were last started or changed here, and their start numbers. Used by the herder's thread.
        self._seen: dict[str, tuple[StoredConnector, int]] = {}
        self._incomplete = IncompleteConnectors(parts.local)
        self._heard: Future[None] | None = None
        self._thread = threading.Thread(
            target=in_log_context(self._run), name="headrace-group", daemon=True
        )

    # -- asked by the herder and by runs ----------------------------------------------------------------

    def begin(self, only: Collection[str] | None) -> None:
        """Start; returns before Kafka has been reached. *only* is for workers that stand alone."""
        assert only is None, "the group says what runs"
        self._thread.start()

    def ready(self) -> None:
        """Let connectors run, as soon as they are assigned."""
        self._is_ready.set()

    def give_up(self) -> None:
        """Its start is not tried again."""

    def close(self) -> None:
        """Leave the group, after others have taken over what runs here, or it has ended within its grace. May be called again."""
        self._is_closed = True
        self._is_ready.set()
        self._woken.set()
        if self._role.has_joined:
            self._thread.join()

    def leave_at_once(self) -> None:
        """End what runs here and leave, as Kafka Connect's workers do."""
        self._is_hurried = True
        self._woken.set()

    @property
    def is_open(self) -> bool:
        """Whether the group has been joined."""
        return self._is_open.is_set()

    @property
    def is_to_end(self) -> bool:
        """Whether it was asked to hand over and end."""
        return self._is_to_end

    @property
    def problem(self) -> str | None:
        """What is wrong with the topics that the group shares, with its leader, or with this worker's membership."""
        if self._role.follows_java and not self._settings.is_mixed:
            return (
                f"A worker of Kafka Connect leads the group {self._settings.group!r} ({self._role.leader_url}). This worker goes on with what it "
                "has, and takes nothing from it: stop the workers of Kafka Connect."
            )
        problem = self._wrong_with_topics
        if problem is None and self.is_open and not self.holds():
            return (
                f"Kafka has not acknowledged this worker's heartbeats in time, so that the group {self._settings.group!r} may have given its work "
                "to others. It joins again as soon as Kafka answers."
            )
        return None if problem is None else str(problem)

    @property
    def generation(self) -> int:
        """The generation of the group that was joined last; 0 before."""
        return max(self._role.generation, 0)

    def holds(self) -> bool:
        """Whether the group cannot have given this worker up. Any thread may ask, as often as it likes.

        After a removal what it had ends first, although the library may have joined again by then.
        """
        joined_as = self._role.member_id
        return self._membership.member_id == joined_as and self._membership.holds()

    def require_writer(self) -> None:
        """Return if this worker leads the group; raises ``NotLeadingError`` otherwise. Any thread may ask, before each write."""
        if not (self._role.leads and self.holds()):
            raise NotLeadingError(
                f"{NO_LEADER} This worker does not lead the group {self._settings.group!r} now, and only its leader writes."
            )

    def has(self, name: str) -> bool:
        """Whether the connector is assigned to this worker, and is not being given up."""
        return name in self._role.owned and name not in self._giving_up

    def require_owner(self, name: str) -> None:
        """Return if the connector is assigned to this worker.

        Raises ``ElsewhereError`` where another one has it or knows who has, ``ConflictError`` while none has, and ``ServerError`` while
        something is wrong with the topics: what was stopped then could not begin again.
        """
        self.require_topics()
        if self.has(name):
            return
        role = self._role
        if not role.leads:
            self.require_may_change()
        url = role.as_leader.owner_url(name)
        if url in (None, self._settings.url):
            raise ConflictError(NO_LEADER)
        raise ElsewhereError(
            f"Only the worker that runs connector {name} can do this.",
            url=url,
            is_over=lambda: role.as_leader.owner_url(name) != url,
        )

    def require_may_change(self) -> None:
        """Return if this worker leads the group, and its membership holds.

        Raises ``ElsewhereError`` where another worker leads, ``ConflictError`` while none does, and ``ServerError`` while something is
        wrong with the topics.
        """
        self.require_topics()
        self._require_leader()

    def require_topics(self) -> None:
        """Return if nothing is wrong with the group's topics; raises ``ServerError`` otherwise."""
        problem = self._wrong_with_topics
        if problem is not None:
            raise ServerError(
                f"Nothing is changed while the group's topics are not right. {problem}"
            )

    def _require_leader(self) -> None:
        leader = self._role.leader_url
        if leader is not None and not self._role.leads:
            raise ElsewhereError(
                f"Only the leader of the group {self._settings.group!r} can do this.",
                url=leader,
                is_over=lambda: self._role.leader_url != leader,
            )
        may_lead = self._is_leading or self._settles_on == threading.get_ident()
        if not (may_lead and self.holds()):
            away = (
                "" if self.holds() else " Kafka does not acknowledge the heartbeats of this worker."
            )
            raise ConflictError(f"{NO_LEADER}{away}")

    def catch_up(self) -> None:
        """Read the group's topics to their ends; raises ``RetriableError`` when that takes too long."""
        self._storage().refresh()

    def stored(self, connector: StoredConnector, *, again: bool) -> None:
        """Start or change it if it is here; others follow the config topic, and a new one is assigned soon."""
        if self.has(connector.name):
            self._want(connector, again=again)
        self._woken.set()

    def deleted(self, name: str) -> None:
        """End it if it is here; others follow the config topic, and the work is divided again soon."""
        self._seen.pop(name, None)
        if self.has(name):
            self._parts.reconciler.want(name, None)
        self._woken.set()

    def await_end(self, name: str, ended: Future[None], outcome: str) -> None:
        """Wait for the run here, or ask the worker that has the connector."""
        self._parts.reconciler.await_end(name, ended, outcome)
        self._await_java_workers(name, outcome)
        url = self._role.as_leader.owner_url(name)
        # Workers of Kafka Connect are not asked such a thing.
        if url in (None, self._settings.url, *self._role.as_leader.java_workers):
            return
        try:
            self._peers.ask(url, quiet_request(name))
        except RequestError as error:
            raise ServerError(
                f"{outcome}, but the worker at {url}, which has connector {name}, does not say that nothing of it runs any more: {error}"
            ) from error

    def _await_java_workers(self, name: str, outcome: str) -> None:
        """Wait until no worker of Kafka Connect has tasks of the connector, as the rounds show in which its tasks are taken away."""
        settings = self._settings
        seconds = self._parts.local.grace + LEAVE_SECONDS + settings.session
        deadline = Deadline.after(seconds, self._clock)
        while urls := self._role.as_leader.java_workers_with(name):
            if deadline.expired:
                raise ServerError(
                    f"{outcome}, but workers of Kafka Connect ({', '.join(urls)}) still have tasks of connector {name} after {seconds:g} s. The "
                    f"group {settings.group!r} takes them away as soon as all its members have joined again. Retry later."
                )
            time.sleep(_ARRIVING_SECONDS)

    def await_quiet(self, name: str) -> None:
        """Read to the end of the config topic, and end what is not to run any more."""
        self.catch_up()

        def act() -> Future[None]:
            self._compare_one(name)
            return self._parts.reconciler.quiet(name)

        ended = self._parts.queue.ask(f"waiting for the tasks of connector {name} to end", act)
        self._parts.reconciler.await_end(name, ended, "It is to end")

    def fence_tasks(self, connector: StoredConnector) -> bool:
        """Once for each set of tasks, before the first of them begins, as a leader of Kafka Connect does (KIP-618).

        What tasks before them may have left has the same ids, and one with the same number fences it by itself.
        """
        name, local = connector.name, self._parts.local
        if self._storage().is_fenced(name):
            return False
        before = local.configs.task_count(name)
        if before is not None and before.slots > 1:
            kafka = self._parts.kafka_readiness.kafka()
            try:
                spec = local.validator.run_spec(local.validator.resolved(connector.config))
                fence_tasks(spec, kafka.services, count=before.slots)
            except ConnectError as error:
                raise ServerError(
                    f"Failed to perform zombie fencing for source connector {name}: {error}"
                ) from error
        return True

    def verify(self, body: bytes, signature: str | None, algorithm: str | None) -> None:
        """With the key in the config topic."""
        speaks_signed = self._role.protocol is ProtocolVersion.SESSIONED
        if self._settings.is_mixed and not speaks_signed and signature is None:
            # As Kafka Connect's workers send it then.
            return
        self._peers.verify(body, signature, algorithm)

    def send(self, elsewhere: ElsewhereError, request: InternalRequest) -> None:
        """Have it done there."""
        self._peers.ask(elsewhere.url, request)
        self.catch_up()

    def workers(self) -> Sequence[WorkerInfo]:
        """The group as its leader knows it since the work was last divided; one of Kafka Connect does not tell, but the brokers do."""
        if self._role.follows_java:
            return self.known_workers()
        self._require_leader()
        return infos(self._role.as_leader.members, leader=self._role.leader_url)

    def known_workers(self, *, unreachable: str | None = None) -> Sequence[WorkerInfo]:
        """The group as the brokers know it; the worker at the URL *unreachable* does not answer."""
        members = self._described_members()
        return infos(members, leader=self._role.leader_url, unreachable=unreachable)

    def relinquish(self, worker: str, *, stay: bool = False) -> None:
        """Hand over what runs here, now or as the first thing at its end; raises ``ElsewhereError`` where another worker is meant."""
        self._require_named(worker)
        if stay and self._role.follows_java:
            raise ConflictError(
                f"A worker of Kafka Connect leads the group {self._settings.group!r}, which gives work to all its members: have this one end instead."
            )
        if stay:
            self._set_flag(MemberFlag.LEAVING, is_set=True)
        else:
            self._is_to_end = True

    def rejoin(self, worker: str) -> None:
        """Take connectors again; raises ``ElsewhereError`` where another worker is meant."""
        self._require_named(worker)
        self._set_flag(MemberFlag.LEAVING, is_set=False)

    def uses(self, topics: str) -> None:
        """These are the group's topics, in words, as this worker takes it; called before the group is joined."""
        self._role.topics = topics

    def arrives(self, at_most: float) -> None:
        """Take no connectors until :meth:`has_arrived`, but for *at_most* so many seconds; called before the group is joined."""
        self._due.arrival = self._clock() + at_most
        self._set_flag(MemberFlag.TAKES_NOTHING, is_set=True)

    def has_arrived(self) -> None:
        """Take connectors from now on; any thread may call."""
        self._set_flag(MemberFlag.TAKES_NOTHING, is_set=False)

    @property
    def is_arriving(self) -> bool:
        """Whether it takes no connectors yet."""
        return MemberFlag.TAKES_NOTHING in self._role.flags

    def _require_named(self, worker: str) -> None:
        if worker == worker_name(self._settings.url):
            return
        if self._role.follows_java:
            members = self._described_members()
        else:
            self._require_leader()
            members = self._role.as_leader.members
        raise elsewhere(members, worker, group=self._settings.group)

    def _described_members(self) -> Sequence[GroupMember]:
        try:
            described = self._membership.described(_DESCRIBE_SECONDS)
        except ConnectError as error:
            raise ConflictError(
                f"Kafka does not tell who is in the group {self._settings.group!r}: {error}"
            ) from error
        return members_in(described, group=self._settings.group)

    def _set_flag(self, flag: MemberFlag, *, is_set: bool) -> None:
        with self._flags_guard:
            before = self._role.flags
            self._role.flags = before | flag if is_set else before & ~flag
        if bool(before & flag) is not is_set:
            self._membership.request_join()

    # -- its thread -------------------------------------------------------------------------------------

    def _run(self) -> None:
        parts = self._parts
        try:
            with parts.stages.during("initializing and reading to the end of internal topics"):
                self._kafka = parts.opening()
            self._storage().follow_configs(self._woken.set)
            self._role.as_leader.learn_classes()
            while not self._is_closed:
                self._try(self._turn)
            self._hand_over()
        except Exception as error:  # noqa: BLE001 (requests that wait for Kafka raise it, and the worker ends)
            parts.kafka_readiness.refuse(error)
        self._leave()

    def _try(self, act: Callable[[], None]) -> None:
        """Do *act*, again later after an error that waiting may resolve; before the group was joined others are raised."""
        try:
            act()
        except ConnectError as error:
            if not (self.is_open or isinstance(error, RetriableError)):
                raise
            self._note(error)
        except GroupFormatError as error:
            self._note(RetriableError(f"The group's leader has sent what cannot be read: {error}"))
            self._membership.request_join()

    def _note(self, error: ConnectError) -> None:
        if str(error) != self._noted:
            self._noted = str(error)
            self._reminder.reset()
        if self._reminder.is_due(self._clock()):
            _log.warning("%s", error)
        # What has failed has asked for the next join already.
        self._woken.clear()
        self._woken.wait(_RETRY_SECONDS)

    def _turn(self) -> None:
        self._stay_alive()
        if self._membership.is_removed:
            self._end_all()
        if self._join_at is not None and self._clock() >= self._join_at:
            self._join_at = None
            self._membership.request_join()
        if self.is_arriving and self._clock() >= self._due.arrival:
            # Its connectors then say what they wait for.
            self.has_arrived()
        if self._role.has_more_to_say:
            self._membership.request_join()
        if self._membership.needs_join:
            self._join()
        self._rest(self._until_due())
        # Last: whatever is wrong with the topics, the group is not left for it.
        self._follow()

    def _join(self) -> None:
        assert self._kafka is not None
        if self._joins_since is None:
            self._joins_since = self._clock()
            self._kafka.services.emit(Rebalancing())
        if self._role.is_eager:
            # As its metadata says that nothing runs here, the leader may give it to anyone.
            self._give_up_all()
        joined = self._membership.join(_JOIN_SECONDS)
        if joined is None:
            return
        # What came while the work was being divided is compared with how it was divided.
        self._config_offset = -1
        try:
            if joined.member_id != self._role.member_id:
                self._end_all()
            assignment = self._role.joined(joined)
            if self._role.is_eager and self._role.has_something:
                # It has joined in another protocol. A leader of headrace has given nothing to anyone until this has ended.
                self._give_up_all()
                self._membership.request_join()
            self._is_leading = self._is_leading and self._role.leads
            if self._is_in_force(assignment):
                self._role.note_divided()
                self._apply()
                self._note_rebalance(joined, self._kafka.services.emit)
        except BaseException:
            # What was not applied is assigned once more.
            self._membership.request_join()
            raise

    def _note_rebalance(self, joined: Joined, emit: EventListener) -> None:
        since, self._joins_since = self._joins_since, None
        assert since is not None
        emit(
            Rebalanced(
                generation=joined.generation,
                leader=self._role.leader_url or "",
                protocol=joined.protocol,
                seconds=self._clock() - since,
            )
        )

    def _end_all(self) -> None:
        """The group takes this worker for someone new, who has nothing: what it had may be another worker's by now."""
        # Another one may have led meanwhile.
        self._is_leading = False
        if self._role.has_something:
            _log.warning(
                "The group %r has gone on without this worker, whose connectors end here. It joins again.",
                self._settings.group,
            )
            self._give_up_all()

    def _is_in_force(self, assignment: Assignment) -> bool:
        """Read as far as the leader has; returns whether anything is assigned."""
        if assignment.config_offset == UNREACHABLE_OFFSET:
            # A member leaves a leader of Kafka Connect: it has said so for everyone to join again.
            self._membership.request_join()
            return False
        deadline = Deadline.after(_READ_SECONDS, self._clock)
        storage = self._storage()
        # Not to the topic's end at first, where a leader that was killed may have left a transaction open.
        while storage.config_offset < assignment.config_offset and not deadline.expired:
            storage.take_arrived()
            self._rest(_ARRIVING_SECONDS)
            self._keep_alive()
        if storage.config_offset < assignment.config_offset:
            storage.refresh()
        self._role.raise_if_refused()
        if assignment.error:
            self._membership.request_join()
        return not assignment.error

    def _apply(self) -> None:
        """Lead, if that has become this worker's turn; end what was revoked, and start what was assigned."""
        assignment = self._role.assignment
        if not self.is_open:
            self._role.refuse_java_workers()
        self._lead()
        if not self.is_open:
            self._open()
        added = (
            self._apply_pieces(assignment)
            if self._role.is_by_task
            else self._apply_connectors(assignment)
        )
        self._role.take(added)
        for name in sorted(added):
            self._submit_start(name)
        self._join_at = self._clock() + assignment.delay_ms / 1e3 if assignment.delay_ms else None

    def _apply_connectors(self, assignment: Assignment) -> frozenset[str]:
        """End what was revoked; returns what is to be started."""
        role = self._role
        if role.pieces.keys() - role.owned:
            # Of connectors of which a part was here, as long as the group was mixed, none runs here. The leader does not know yet.
            self._give_up(role.pieces.keys() - role.owned)
            self._membership.request_join()
        role.pieces = {}
        self._give_up(role.owned & assignment.revoked.keys())
        if self._is_leading:
            self._ask(self._show_idle)
        if role.follows_java:
            return frozenset()
        return frozenset(assignment.assigned) - role.owned

    def _apply_pieces(self, assignment: Assignment) -> frozenset[str]:
        """As :meth:`_apply_connectors`, where the leader divides by tasks: what was given in part is shown as FAILED."""
        role = self._role
        pieces = role.pieces_after(assignment)
        whole = frozenset(name for name, tasks in pieces.items() if role.is_whole(name, tasks))
        # What was written since then is divided in the round that comes.
        is_current = self._storage().config_offset == assignment.config_offset
        if not is_current:
            self._membership.request_join()
        ended = role.owned & assignment.revoked.keys()
        self._give_up(ended | role.owned - whole if is_current else ended)
        role.pieces = pieces
        if not is_current:
            return frozenset()
        apart = {name: tasks for name, tasks in pieces.items() if name not in whole}
        self._ask(lambda: self._incomplete.show(apart))
        return whole - role.owned

    def has_tasks(self, name: str, configs: Sequence[Mapping[str, str]]) -> bool:
        """A leader of Kafka Connect writes them again, for which all members join again."""
        stored = self._parts.local.configs.task_configs(name)
        return self._role.follows_java and list(stored) == list(configs)

    def require_tasks(self, name: str) -> None:
        """Return if all tasks of the connector, which is here, are, too, and can run at once if they have to.

        Raises ``RetriableError`` until the leader has given them to this worker, or the connector to one that has room: how many there
        are is only known since they were stored.
        """
        role = self._role
        load = role.as_leader.configured().get(name)
        if load is not None and not load.fits(self._settings.slots):
            raise RetriableError(
                f"Connector {name} has {load.tasks} tasks that have to run at once, and this worker has {self._settings.slots} slots: it "
                f"waits until the leader of the group {self._settings.group!r} has given it to another one."
            )
        if role.is_by_task and not role.is_whole(name, role.pieces.get(name, frozenset())):
            raise RetriableError(
                f"Connector {name} waits until the leader of the group {self._settings.group!r} has assigned its tasks."
            )

    def _submit_start(self, name: str) -> None:
        # Behind a request that holds its name, such as its creation with offsets.
        starting = self._parts.queue.submit(None, partial(self._start, name), connector=name)
        starting.add_done_callback(partial(_log_failure, name))

    def _open(self) -> None:
        """Answer requests, and let connectors run."""
        assert self._kafka is not None
        kafka = self._kafka
        self._parts.kafka_readiness.open(kafka)
        self._is_ready.wait()
        self._ask(lambda: self._parts.reconciler.opened(kafka))
        self._is_open.set()

    def _lead(self) -> None:
        """Finish what an earlier leader has left, before this one changes anything."""
        if self._role.leads and not self._is_leading:
            assert self._kafka is not None
            _log.info("This worker leads the group %r", self._settings.group)
            self._alive_during(partial(self._begin_to_lead, self._kafka))
            self._is_leading = True

    def _begin_to_lead(self, kafka: KafkaServices) -> None:
        storage = self._storage()
        storage.take_lead()
        storage.refresh()
        self._settles_on = threading.get_ident()
        try:
            settle_changes(self._parts.local, kafka)
        finally:
            self._settles_on = None
        self._ask(self._forget_ghosts)
        self._peers.renew_key()

    def _alive_during(self, act: Callable[[], None]) -> None:
        """Do *act*, which may take longer than a rebalance may, without losing the membership for it."""
        with ThreadPoolExecutor(1, thread_name_prefix="headrace-leading") as thread:
            acting = thread.submit(in_log_context(act))
            while wait([acting], timeout=_RETRY_SECONDS).not_done:
                self._keep_alive()
            acting.result()

    def _forget_ghosts(self) -> None:
        local = self._parts.local
        statuses = HerderStatuses(local)
        for name in set(local.statuses.connectors()) - local.configs.connectors().keys():
            statuses.forget(name)

    def _show_idle(self) -> None:
        """Say of connectors that no worker has why they do not run."""
        statuses, role = HerderStatuses(self._parts.local), self._role
        delay = self._settings.max_delay_ms / 1e3
        why = {
            name: f"It waits for the worker at {url}, which is gone, for up to {delay:g} s (scheduled.rebalance.max.delay.ms)."
            for name, url in role.as_leader.waiting.items()
        }
        for name in role.as_leader.unplaced:
            tasks = len(self._parts.local.configs.task_configs(name))
            why[name] = (
                f"All of its {tasks} tasks have to run at once, and no worker of the group has as many slots. Raise headrace.slots of one, or "
                "lower tasks.max."
            )
        for name in why.keys() - self._shown_idle.keys():
            if self._parts.local.configs.connector(name) is None:
                # It was deleted since the work was divided.
                continue
            if name in role.as_leader.unplaced:
                _log.warning("Connector %s does not run. %s", name, why[name])
            statuses.unassigned(name, trace=why[name])
        self._shown_idle = why

    def _start(self, name: str) -> None:
        connector = self._parts.local.configs.connector(name)
        if connector is not None and self.has(name) and name not in self._seen:
            self._want(connector, again=False)

    def _want(self, connector: StoredConnector, *, again: bool) -> None:
        number = self._storage().start_number(connector.name)
        self._seen[connector.name] = connector, number
        target = TargetState(connector.target_state)
        self._parts.reconciler.want(connector.name, target, again=again)

    def _give_up_all(self) -> None:
        self._give_up(self._role.owned | self._role.pieces.keys())

    def _give_up(self, names: Collection[str]) -> None:
        """Return when nothing of *names* runs here, or their grace is over; from then on they are not this worker's."""
        if not names:
            return
        reconciler = self._parts.reconciler

        def give_up() -> Sequence[Future[None]]:
            # From here on no request starts any of them again.
            self._giving_up = frozenset(names)
            for name in names:
                self._seen.pop(name, None)
                self._incomplete.hide(name)
            return [reconciler.give_up(name) for name in sorted(names)]

        endings = self._ask(give_up, "ending connectors that another worker is to run")
        until = self._clock() + self._parts.local.grace + LEAVE_SECONDS
        while wait(endings, timeout=_RETRY_SECONDS).not_done and self._clock() < until:
            self._keep_alive()
        # Its states are written before someone else writes others.
        self._storage().flush()
        self._role.lose(names)
        self._giving_up = frozenset()
        if self._is_closed:
            # What was handed over waits for this worker to leave.
            self._woken.set()
        if self._kafka is not None:
            for name in names:
                self._kafka.services.offsets.keep_only(NamedConnector(name=name))

    def _keep_alive(self) -> None:
        try:
            self._membership.keep_alive()
        except ConnectError as error:
            # What the herder has given up must not be said to be here.
            _log.warning("%s", error)

    def _follow(self) -> None:
        """Have the herder look at what others have written."""
        storage = self._storage()
        self._read_on(storage)
        if self._clock() >= self._due.check:
            self._due.check = self._clock() + _CHECK_SECONDS
            had_problem, self._problem = self._problem is not None, self._topics_problem()
            if had_problem and self._problem is None:
                storage.refresh()
        if storage.config_offset != self._config_offset:
            self._config_offset = storage.config_offset
            self._parts.queue.post(self._compare)
            self._role.as_leader.learn_classes()
            if self._role.must_divide_again():
                self._membership.request_join()
        if self._is_leading:
            self._peers.renew_key()
            self._settle_left()
        if storage.failure is not None:
            raise storage.failure

    def _read_on(self, storage: GroupStorage) -> None:
        """See what has arrived; what cannot be read, such as a topic that was made anew, this worker's health says."""
        try:
            storage.take_arrived()
            if self._clock() >= self._due.refresh and self.holds():
                # What is only followed tells neither that a topic is gone nor that a connection is dead.
                self._due.refresh = self._clock() + _REFRESH_SECONDS
                # A leader that was killed may have left a transaction open, which ends when another one leads: by this thread.
                storage.refresh(_LOOK_SECONDS)
        except RetriableError:
            raise
        except ConnectError as error:
            self._unreadable = error
            raise
        self._unreadable = None

    def _topics_problem(self) -> ConnectError | None:
        try:
            self._check()
        except RetriableError:
            # It is asked again.
            return self._problem
        except ConnectError as error:
            _log.error("%s", error)
            return error
        return None

    @property
    def _wrong_with_topics(self) -> ConnectError | None:
        """Why they cannot be trusted, or not be read, or why Kafka takes no states, if waiting does not help."""
        failure = self._storage().failure if self.is_open else None
        refused = None if isinstance(failure, RetriableError) else failure
        return self._problem or self._unreadable or refused

    def _compare(self) -> None:
        for name in self._role.owned:
            self._compare_one(name)

    def _compare_one(self, name: str) -> None:
        now, seen = self._parts.local.configs.connector(name), self._seen.get(name)
        if seen is None:
            if now is not None and self.has(name):
                self._submit_start(name)
        elif now is None:
            self.deleted(name)
        else:
            # As it is where the leader runs it, also if nothing is left to be seen of what was changed.
            before, number = seen
            starts_anew = number != self._storage().start_number(name)
            if starts_anew or now != before:
                self._want(now, again=starts_anew or now.config != before.config)

    def _settle_left(self) -> None:
        """Finish changes of offsets that failed and could not be undone then: no connector with such a change starts."""
        if self._clock() < self._due.settle or not (
            self._settling is None or self._settling.done()
        ):
            return
        self._due.settle = self._clock() + _SETTLE_SECONDS
        self._settling = Future[None]()
        threading.Thread(
            target=in_log_context(self._settle),
            args=(self._settling,),
            name="headrace-settling",
            daemon=True,
        ).start()

    def _settle(self, settling: Future[None]) -> None:
        assert self._kafka is not None
        try:
            for name in self._kafka.changes.open_changes():
                # Not while a request is at it.
                self._parts.queue.hold(name, f"settling the offsets of connector {name}")
                try:
                    self.require_may_change()
                    settle_changes(self._parts.local, self._kafka, only=name)
                finally:
                    self._parts.queue.release(name)
        except ConnectError as error:
            _log.warning("Changes of offsets that are not finished are looked at later: %s", error)
        finally:
            settling.set_result(None)

    def _stay_alive(self) -> None:
        """Only while the herder's thread answers: a worker that is stuck is to lose its membership."""
        if self._clock() >= self._due.alive and (self._heard is None or self._heard.done()):
            self._due.alive = self._clock() + _ALIVE_SECONDS
            self._membership.keep_alive()
            self._heard = self._parts.queue.submit(None, lambda: None)

    def _ask(self, act: Callable[[], _Answer], stage: str | None = None) -> _Answer:
        """What *act* returns or raises on the herder's thread, which makes errors of Kafka those of a request."""
        try:
            return self._parts.queue.ask(stage, act)
        except RequestError as error:
            if isinstance(error.__cause__, ConnectError):
                raise error.__cause__ from error
            raise

    def _rest(self, seconds: float) -> None:
        """Wait until this thread is woken, or a record of the group's topics has arrived; for at most *seconds*."""
        self._woken.wait(seconds, self._storage().descriptors)

    def _until_due(self) -> float:
        """In how many seconds this thread looks again, if nothing happens."""
        if self._membership.needs_join:
            # It has waited for the others already, who may be there by now.
            return 0.0
        if self._join_at is None:
            return _LOOK_SECONDS
        return min(_LOOK_SECONDS, self._join_at - self._clock())

    def _hand_over(self) -> None:
        """Have others take over what runs here before this worker leaves, rather than after the group has missed it (KIP-995)."""
        role = self._role
        is_alone = role.leads and len(role.as_leader.members) <= 1
        # Nothing waits for who has left where all work is dealt anew.
        if is_alone or role.is_eager or not (role.has_something and self.holds()):
            return
        if role.follows_java and not self._settings.tells_java_leader:
            return
        _log.info("Connectors (%d) are handed over to other workers", len(role.owned))
        deadline = Deadline.after(self._settings.hand_over, self._clock)
        if role.follows_java:
            self._be_forgotten(deadline)
        if not role.follows_java:
            self._set_flag(MemberFlag.LEAVING, is_set=True)
            while role.has_something and not (deadline.expired or self._is_hurried):
                self._try(self._turn)

    def _be_forgotten(self, deadline: Deadline) -> None:
        """Have a leader of Kafka Connect give this worker's work away as soon as it has left.

        It knows no leaving. But where a member has read further than it can, it assigns nothing, has everyone join again, and does not
        know any more who had what: in the next round, which waits for this worker to end its work and to leave, nothing is missed.
        """
        role = self._role
        role.ask_to_be_forgotten()
        while role.follows_java and not (role.is_forgotten or deadline.expired or self._is_hurried):
            self._try(self._turn)

    def _leave(self) -> None:
        try:
            self._give_up_all()
            self._membership.leave("the worker is shutting down", _LEAVE_SECONDS)
            if self._role.has_joined:
                _log.info("The group %r has been left", self._settings.group)
        except ConnectError as error:
            _log.warning("The group %r was not left: %s", self._settings.group, error)
        finally:
            self._membership.close()
            self._woken.close()


def _log_failure(name: str, starting: Future[None]) -> None:
    error = starting.exception()
    if error is not None:
        _log.error(
            "Connector %s, which is assigned to this worker, is not started: %s", name, error
        )
