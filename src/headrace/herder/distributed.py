"""The coordination of a worker of a group: the group's leader says what it runs, and alone changes the cluster."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Collection, Sequence
from concurrent.futures import Future, wait
from functools import partial
from typing import Final, TypeVar

from headrace.connect.errors import ConnectError, RetriableError
from headrace.herder.answers import TargetState
from headrace.herder.coordination import HerderParts, settle_changes
from headrace.herder.errors import NO_LEADER, ConflictError, ElsewhereError, ServerError
from headrace.herder.group_protocol import (
    Assignment,
    GroupFormatError,
)
from headrace.herder.leadership import GroupSettings, GroupStorage, Leadership
from headrace.herder.services import KafkaServices
from headrace.herder.statuses import HerderStatuses
from headrace.kafka.deadline import Clock, Reminder
from headrace.kafka.membership import GroupMembership, GroupRole
from headrace.observe.log_format import in_log_context
from headrace.runtime.runs import LEAVE_SECONDS
from headrace.storage.protocols import StoredConnector

_log = logging.getLogger(__name__)
_Answer = TypeVar("_Answer")
_LOOK_SECONDS: Final = 0.2
_JOIN_SECONDS: Final = 0.5
_RETRY_SECONDS: Final = 1.0
_LEAVE_SECONDS: Final = 5.0
_CHECK_SECONDS: Final = 300.0


class Distributed:
    """A :class:`~headrace.herder.coordination.Coordination`, with a thread of its own that joins the group and follows its topics.

    *storage* is asked for once Kafka has been reached. *member* makes the membership, which has not joined, from what it asks and the
    function that wakes this one. *check* raises ``ConfigError`` when the topics lose data; it is called every five minutes.
    """

    def __init__(
        self,
        parts: HerderParts,
        settings: GroupSettings,
        storage: Callable[[], GroupStorage],
        member: Callable[[GroupRole, Callable[[], None]], GroupMembership],
        *,
        check: Callable[[], None] = lambda: None,
        clock: Clock = time.monotonic,
    ) -> None:
        self._check = check
        self._parts = parts
        self._settings = settings
        self._storage = storage
        self._clock = clock
        self._woken = threading.Event()
        self._leadership = Leadership(
            parts, settings, storage, clock, member_id=lambda: self._membership.member_id
        )
        self._membership = member(self._leadership, self._woken.set)
        self._is_ready = threading.Event()
        self._is_open = threading.Event()
        self._is_closed = False
        self._kafka: KafkaServices | None = None
        self._is_leading = False
        self._join_at: float | None = None
        self._check_at = clock() + _CHECK_SECONDS
        self._reminder, self._noted = Reminder(), ""
        self._problem: ConnectError | None = None
        self._config_offset = -1
        # Connectors as they were when they were last started or changed here. Used by the herder's thread.
        self._seen: dict[str, StoredConnector] = {}
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
        """Leave the group, after what runs here has ended within its grace."""
        self._is_closed = True
        self._is_ready.set()
        self._woken.set()
        if self._leadership.has_joined:
            self._thread.join()

    @property
    def is_open(self) -> bool:
        """Whether the group has been joined."""
        return self._is_open.is_set()

    @property
    def problem(self) -> str | None:
        """What is wrong with the topics that the group shares, which no waiting resolves; looked at again every five minutes."""
        return None if self._problem is None else str(self._problem)

    @property
    def generation(self) -> int:
        """The generation of the group that was joined last; 0 before."""
        return max(self._leadership.generation, 0)

    def holds(self) -> bool:
        """Whether the group cannot have given this worker up. Any thread may ask, as often as it likes.

        After a removal what it had ends first, although the library may have joined again by then.
        """
        joined_as = self._leadership.member_id
        return self._membership.member_id == joined_as and self._membership.holds()

    def require_lead(self) -> None:
        """Return if this worker leads the group; raises ``RetriableError`` otherwise. Any thread may ask, before each write."""
        if not (self._leadership.leads and self.holds()):
            raise RetriableError(
                f"This worker does not lead the group {self._settings.group!r} now, and only its leader writes."
            )

    def has(self, name: str) -> bool:
        """Whether the connector is assigned to this worker."""
        return name in self._leadership.owned

    def require_leader(self) -> None:
        """Return if this worker leads the group, and its membership holds.

        Raises ``ElsewhereError`` where another worker leads, ``ConflictError`` while none does, and ``ServerError`` while something is
        wrong with the topics.
        """
        if self._problem is not None:
            raise ServerError(
                f"Nothing is changed while the group's topics are not right. {self._problem}"
            )
        leader = self._leadership.leader_url
        if leader is not None and not self._leadership.leads:
            raise ElsewhereError(
                f"Only the leader of the group {self._settings.group!r} can do this.", url=leader
            )
        if not (self._is_leading and self.holds()):
            raise ConflictError(NO_LEADER)

    def catch_up(self) -> None:
        """Read the group's topics to their ends; raises ``RetriableError`` when that takes too long."""
        self._storage().refresh()

    def stored(self, connector: StoredConnector, *, again: bool) -> None:
        """Start or change it if it is here; else have it assigned."""
        if self.has(connector.name):
            self._want(connector, again=again)
        else:
            self._membership.request_join()

    def deleted(self, name: str) -> None:
        """End it if it is here, and divide the work again."""
        self._seen.pop(name, None)
        if self.has(name):
            self._parts.reconciler.want(name, None)
        self._membership.request_join()

    # -- its thread -------------------------------------------------------------------------------------

    def _run(self) -> None:
        parts = self._parts
        try:
            with parts.stages.during("initializing and reading to the end of internal topics"):
                self._kafka = parts.opening()
            while not self._is_closed:
                self._try(self._turn)
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
        if not isinstance(error, RetriableError):
            self._problem = error
        if str(error) != self._noted:
            self._noted = str(error)
            self._reminder.reset()
        if self._reminder.is_due(self._clock()):
            _log.warning("%s", error)
        self._rest(_RETRY_SECONDS)

    def _turn(self) -> None:
        self._stay_alive()
        if self._membership.is_removed:
            self._end_all()
        if self._join_at is not None and self._clock() >= self._join_at:
            self._join_at = None
            self._membership.request_join()
        if self._membership.needs_join:
            self._join()
        self._rest(_LOOK_SECONDS)
        # Last: whatever is wrong with the topics, the group is not left for it.
        self._follow()

    def _join(self) -> None:
        joined = self._membership.join(_JOIN_SECONDS)
        if joined is None:
            return
        # What came while the work was being divided is compared with how it was divided.
        self._config_offset = -1
        try:
            if joined.member_id != self._leadership.member_id:
                self._end_all()
            assignment = self._leadership.joined(joined)
            self._is_leading = self._is_leading and self._leadership.leads
            if self._is_in_force(assignment):
                self._apply()
        except BaseException:
            # What was not applied is assigned once more.
            self._membership.request_join()
            raise

    def _end_all(self) -> None:
        """The group takes this worker for someone new, who has nothing: what it had may be another worker's by now."""
        # Another one may have led meanwhile.
        self._is_leading = False
        if self._leadership.owned:
            _log.warning(
                "The group %r has gone on without this worker, whose connectors end here. It joins again.",
                self._settings.group,
            )
            self._give_up(self._leadership.owned)

    def _is_in_force(self, assignment: Assignment) -> bool:
        """Read as far as the leader has; returns whether anything is assigned."""
        storage = self._storage()
        if assignment.error or assignment.config_offset > storage.config_offset:
            storage.refresh()
        if assignment.error:
            self._membership.request_join()
        return not assignment.error

    def _apply(self) -> None:
        """Lead, if that has become this worker's turn; end what was revoked, and start what was assigned."""
        assignment = self._leadership.assignment
        if not self.is_open:
            self._leadership.refuse_strangers()
        self._lead()
        if not self.is_open:
            self._open()
        self._give_up(self._leadership.owned & assignment.revoked.keys())
        added = frozenset(assignment.assigned) - self._leadership.owned
        self._leadership.take(added)
        for name in sorted(added):
            # Behind a request that holds its name, such as its creation with offsets.
            starting = self._parts.queue.submit(None, partial(self._start, name), connector=name)
            starting.add_done_callback(partial(_log_failure, name))
        if assignment.delay_ms:
            self._join_at = self._clock() + assignment.delay_ms / 1e3

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
        if self._leadership.leads and not self._is_leading:
            assert self._kafka is not None
            _log.info("This worker leads the group %r", self._settings.group)
            storage = self._storage()
            storage.take_lead()
            storage.refresh()
            settle_changes(self._parts.local, self._kafka)
            self._ask(self._forget_ghosts)
            self._is_leading = True

    def _forget_ghosts(self) -> None:
        local = self._parts.local
        statuses = HerderStatuses(local)
        for name in set(local.statuses.connectors()) - local.configs.connectors().keys():
            statuses.forget(name)

    def _start(self, name: str) -> None:
        connector = self._parts.local.configs.connector(name)
        if connector is not None and self.has(name):
            self._want(connector, again=False)

    def _want(self, connector: StoredConnector, *, again: bool) -> None:
        self._seen[connector.name] = connector
        target = TargetState(connector.target_state)
        self._parts.reconciler.want(connector.name, target, again=again)

    def _give_up(self, names: Collection[str]) -> None:
        """Return when nothing of *names* runs here, or their grace is over; from then on they are not this worker's."""
        if not names:
            return
        reconciler = self._parts.reconciler

        def give_up() -> Sequence[Future[None]]:
            for name in names:
                self._seen.pop(name, None)
            return [reconciler.give_up(name) for name in sorted(names)]

        endings = self._ask(give_up, "ending connectors that another worker is to run")
        until = self._clock() + self._parts.local.grace + LEAVE_SECONDS
        while wait(endings, timeout=_RETRY_SECONDS).not_done and self._clock() < until:
            self._keep_alive()
        # Its states are written before someone else writes others.
        self._storage().flush()
        self._leadership.lose(names)

    def _keep_alive(self) -> None:
        try:
            self._membership.keep_alive()
        except ConnectError as error:
            # What the herder has given up must not be said to be here.
            _log.warning("%s", error)

    def _follow(self) -> None:
        """Have the herder look at what others have written."""
        storage = self._storage()
        storage.take_arrived()
        if self._clock() >= self._check_at:
            self._check_at = self._clock() + _CHECK_SECONDS
            self._check()
            if self._problem is not None:
                storage.refresh()
                self._problem = None
        if storage.config_offset != self._config_offset:
            self._config_offset = storage.config_offset
            self._parts.queue.post(self._compare)
            if self._leadership.must_divide_again():
                self._membership.request_join()
        if storage.failure is not None:
            raise storage.failure

    def _compare(self) -> None:
        for name, seen in list(self._seen.items()):
            now = self._parts.local.configs.connector(name)
            if now is not None and now != seen:
                self._want(now, again=now.config != seen.config)

    def _stay_alive(self) -> None:
        """Only while the herder's thread answers: a worker that is stuck is to lose its membership."""
        if self._heard is None or self._heard.done():
            self._membership.keep_alive()
            self._heard = self._parts.queue.submit(None, lambda: None)

    def _ask(self, act: Callable[[], _Answer], stage: str | None = None) -> _Answer:
        """What *act* returns or raises on the herder's thread, which makes errors of Kafka those of a request."""
        try:
            return self._parts.queue.ask(stage, act)
        except ServerError as error:
            if isinstance(error.__cause__, ConnectError):
                raise error.__cause__ from error
            raise

    def _rest(self, seconds: float) -> None:
        self._woken.wait(seconds)
        self._woken.clear()

    def _leave(self) -> None:
        try:
            self._give_up(self._leadership.owned)
            self._membership.leave("the worker is shutting down", _LEAVE_SECONDS)
        except ConnectError as error:
            _log.warning("The group %r was not left: %s", self._settings.group, error)
        finally:
            self._membership.close()


def _log_failure(name: str, starting: Future[None]) -> None:
    error = starting.exception()
    if error is not None:
        _log.error(
            "Connector %s, which is assigned to this worker, is not started: %s", name, error
        )
