"""Membership in a group of Kafka's classic protocol that is no group of consumers, such as that of Connect's workers.

The only module that knows kafka-python's coordinator, which its authors do not promise to keep: a conformance test runs all that is used
of it against a broker.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import cache
from typing import Any, Final, NamedTuple, Protocol

from kafka.coordinator import base
from kafka.errors import (
    KafkaError,
    NoError,
    RebalanceInProgressError,
    UnknownMemberIdError,
    for_code,
)
from kafka.net.compat import KafkaNetClient
from kafka.protocol.consumer.group import (
    HeartbeatRequest,
    HeartbeatResponse,
    JoinGroupResponse,
    LeaveGroupResponse,
    SyncGroupResponse,
)
from kafka.protocol.metadata.api_versions import ApiVersionsResponse
from kafka.protocol.metadata.find_coordinator import FindCoordinatorResponse
from kafka.protocol.metadata.metadata import MetadataResponse

from headrace.connect.errors import RetriableError, TaskFailedError
from headrace.kafka.deadline import Clock, Deadline
from headrace.kafka.wire.cluster import Cluster
from headrace.kafka.wire.settings import WireSettings

_PROTOCOL_TYPE: Final = "connect"
_TICK_SECONDS: Final = 0.5
# How soon a join that waits is noticed, during which the library sends no heartbeats.
_BEAT_SECONDS: Final = 1.0
# The network's thread has been stopped, or is kept from running, when its last tick is older.
_STALLED_SECONDS: Final = 2.0
# Joins of a large group are the largest answers.
_MOST_BYTES: Final = 100_000_000
_MOST_BACKOFF_MS: Final = 1_000
_CONNECT_SECONDS: Final = 10.0
_CLOSE_SECONDS: Final = 5.0
_NEVER: Final = float("-inf")
_ANSWERS: Final = (
    ApiVersionsResponse,
    FindCoordinatorResponse,
    HeartbeatResponse,
    JoinGroupResponse,
    LeaveGroupResponse,
    MetadataResponse,
    SyncGroupResponse,
)


class JoinedMember(NamedTuple):
    """A member, as the leader gets to know it."""

    member_id: str
    metadata: bytes


class DescribedMember(NamedTuple):
    """A member, as the brokers tell anyone: with what it was given last. During a rebalance they tell neither that nor what it said."""

    member_id: str
    metadata: bytes
    assignment: bytes


class Joined(NamedTuple):
    """A completed join: this member's own id, the name of the protocol that all speak, and what the leader has assigned."""

    generation: int
    member_id: str
    protocol: str
    assignment: bytes


class GroupRole(Protocol):
    """What a member says and decides. It is asked on the membership's own thread, on which the heartbeats are sent: it may not wait."""

    def protocols(self) -> Sequence[tuple[str, bytes]]:
        """The names of the protocols that this member speaks, the preferred one first, and its metadata in each; once a join."""
        ...

    def assign(
        self, generation: int, protocol: str, leader: str, members: Sequence[JoinedMember]
    ) -> Mapping[str, bytes]:
        """What each of *members* is given, by their ids; asked only of the leader, which is *leader*, once a generation."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupTiming:
    """The time-outs of a group, in seconds, named as in Kafka Connect."""

    session: float = 10.0
    heartbeat: float = 3.0
    rebalance: float = 60.0


class GroupMembership:
    """One member of *group*, with a thread of its own for the network. One other thread calls it.

    Nothing is sent before the first ``join``. *wake* is called, on any thread, when the caller should look: a join has completed, or
    another one is needed.
    """

    def __init__(
        self,
        settings: WireSettings,
        group: str,
        role: GroupRole,
        *,
        timing: GroupTiming | None = None,
        wake: Callable[[], None],
        clock: Clock = time.monotonic,
    ) -> None:
        self._settings = settings
        self._group = group
        self._role = role
        self._timing = timing or GroupTiming()
        self._wake = wake
        self._clock = clock
        self._client: Any = None
        self._coordinator: _Coordinator | None = None

    @property
    def needs_join(self) -> bool:
        """Whether a join is needed: the first one, one that another member has begun, or one that was requested."""
        return self._coordinator is None or self._coordinator.need_rejoin()

    @property
    def is_removed(self) -> bool:
        """Whether the group goes on without this member, which was in it before or has not joined yet."""
        return not self.member_id

    @property
    def member_id(self) -> str:
        """The id that the brokers have given this member; empty while they have given none, or do not know it any more."""
        return "" if self._coordinator is None else self._coordinator.own_id()

    def join(self, seconds: float) -> Joined | None:
        """Join, or go on with a join that has begun, for at most *seconds*; ``None`` when that is not over by then.

        The first call also connects, for at most ten seconds.

        The other members are waited for as long as the group's rebalance may take, over as many calls as that needs. Raises
        :class:`~headrace.connect.errors.RetriableError` when the brokers do not answer, and
        :class:`~headrace.connect.errors.TaskFailedError` for what no retry resolves.
        """
        try:
            coordinator = self._opened()
            if not coordinator.ensure_active_group(timeout_ms=seconds * 1000):
                return None
        except KafkaError as error:
            raise self._translated(error) from error
        return coordinator.take_joined()

    def keep_alive(self) -> None:
        """Say that the caller is alive: without, the group is left after the time that a rebalance may take.

        Raises :class:`~headrace.connect.errors.RetriableError` when heartbeats have ended by an error; the next join begins them again.
        """
        if self._coordinator is None:
            return
        try:
            self._coordinator.poll_heartbeat()
        except KafkaError as error:
            # Heartbeats begin with a join.
            self._coordinator.request_rejoin()
            raise self._translated(error) from error

    def request_join(self) -> None:
        """Have the next ``join`` join again. Any thread may call."""
        if self._coordinator is not None:
            self._coordinator.request_rejoin()

    def holds(self) -> bool:
        """Whether no broker can have given this member up: what others may do with its work rests on that. Any thread may call.

        A heartbeat that was sent within the session's time, less the time between two of them, was acknowledged, also during a
        rebalance; and this member has joined that, or may still. Neither counts while the network's thread does not run, as after a
        freeze.
        """
        found = self._coordinator
        return found is not None and found.holds()

    def described(self, seconds: float) -> Sequence[DescribedMember]:
        """All members, as the brokers know them, in at most *seconds*. Any thread may call.

        Raises :class:`~headrace.connect.errors.ConnectError`.
        """
        with closing(Cluster(self._settings)) as cluster:
            found = cluster.describe_group(self._group, Deadline.after(seconds))
        return [
            DescribedMember(each.member_id, each.metadata, each.assignment)
            for each in found.members
        ]

    def leave(self, reason: str, seconds: float) -> None:
        """Leave the group, which the others learn at once, for *reason*; only an attempt, for at most *seconds*."""
        if self._coordinator is not None:
            self._coordinator.maybe_leave_group(reason=reason, timeout_ms=seconds * 1000)

    def close(self) -> None:
        """Leave the group, and release the connections."""
        if self._coordinator is not None:
            self._coordinator.close(timeout_ms=_CLOSE_SECONDS * 1000)
            self._client.close()
            self._coordinator = None

    def _opened(self) -> _Coordinator:
        if self._coordinator is None:
            _prepare_library()
            given = _client_settings(self._settings)
            client: Any = KafkaNetClient(**given)
            network: Any = client._net  # noqa: SLF001 (the library starts its thread nowhere else)
            try:
                network.start()
                version = client.get_broker_version(timeout_ms=_CONNECT_SECONDS * 1000)
                self._coordinator = _Coordinator(
                    client,
                    self._role,
                    self._wake,
                    self._clock,
                    patience=self._timing.session - self._timing.heartbeat,
                    group_id=self._group,
                    api_version=version,
                    session_timeout_ms=int(self._timing.session * 1000),
                    heartbeat_interval_ms=int(self._timing.heartbeat * 1000),
                    max_poll_interval_ms=int(self._timing.rebalance * 1000),
                )
            except BaseException:
                client.close()
                raise
            self._client = client
            network.call_soon_threadsafe(self._coordinator.tick)
            network.call_soon_threadsafe(self._coordinator.beat_meanwhile)
        return self._coordinator

    def _translated(self, error: KafkaError) -> Exception:
        name = type(error).__name__.removesuffix("Error")
        said = f"The group {self._group!r} cannot be joined: {error}"
        if getattr(error, "retriable", False):
            return RetriableError(f"{said.rstrip('.')} ({name}).")
        return TaskFailedError(f"{said.rstrip('.')} ({name}). {_ADVICE.get(name, '')}".rstrip())


_ADVICE: Final = {
    "GroupAuthorizationFailed": "Grant this client Read on the group.",
    "InconsistentGroupProtocol": (
        "Its members are no workers of Kafka Connect, or none of their connect.protocol: choose another group.id."
    ),
    "InvalidSessionTimeout": (
        "Choose a session.timeout.ms within group.min.session.timeout.ms and group.max.session.timeout.ms of the brokers."
    ),
    "GroupMaxSizeReached": "Raise group.max.size of the brokers.",
}


# What the library says of its types leaves out what a subclass needs.
_BaseCoordinator: Any = base.BaseCoordinator


class _Coordinator(_BaseCoordinator):
    """kafka-python's part of a member, whose membership holds for *patience* seconds after what was acknowledged was sent.

    The hooks run on the network's thread.
    """

    def __init__(
        self,
        client: object,
        role: GroupRole,
        wake: Callable[[], None],
        clock: Clock,
        *,
        patience: float,
        **settings: Any,  # noqa: ANN401 (the library's own)
    ) -> None:
        super().__init__(client, **settings)
        self._role = role
        self._wake = wake
        self._clock = clock
        self._patience = patience
        self._joined: Joined | None = None
        self._answered: tuple[object, bytes] | None = None
        self._guard = threading.Lock()
        self._is_waited_for = False
        self._acknowledged_at = _NEVER
        self._settled_at = _NEVER
        self._ticked_at = _NEVER

    def holds(self) -> bool:
        """See :meth:`GroupMembership.holds`."""
        now = self._clock()
        return (
            now - self._ticked_at <= _STALLED_SECONDS
            and now - self._acknowledged_at < self._patience
        )

    def own_id(self) -> str:
        """See :attr:`GroupMembership.member_id`."""
        return str(self._generation.member_id)

    async def tick(self) -> None:
        """Note that the network's thread runs, again and again; after a pause nothing counts that was acknowledged before."""
        while not self._heartbeat_closed:
            now = self._clock()
            if now - self._ticked_at > _STALLED_SECONDS:
                self._forget()
            self._ticked_at = now
            await self._net.sleep(_TICK_SECONDS)

    async def beat_meanwhile(self) -> None:
        """Send the heartbeats that the library does not: none while it joins, as brokers answer them only after the join.

        They go over another connection to the same broker. Without them a rebalance that waits for a slow member would look as one
        that ended, and gave this member's work away, while nothing came through. They end as the library's own do when the caller is
        no longer alive, and nothing of the library's follows from them: the join's own answer says what the broker thinks of it.
        """
        while not self._heartbeat_closed:
            pause = _BEAT_SECONDS
            if self._needs_beat() and await self._is_beat_answered():
                pause = self.heartbeat.config["heartbeat_interval_ms"] / 1000
            await self._net.sleep(pause)

    def take_joined(self) -> Joined | None:
        """The last completed join, once."""
        with self._guard:
            found, self._joined = self._joined, None
            return found

    def protocol_type(self) -> str:
        return _PROTOCOL_TYPE

    def group_protocols(self) -> list[tuple[str, bytes]]:
        return list(self._role.protocols())

    def _perform_assignment(
        self, leader_id: str, protocol: str, members: Sequence[Any]
    ) -> Mapping[str, bytes]:
        found = [JoinedMember(each.member_id, bytes(each.metadata)) for each in members]
        return self._role.assign(self._generation.generation_id, protocol, leader_id, found)

    async def _do_join_and_sync_async(self) -> bytes:
        # One that was completed while no one waited for it: the library would join once more.
        answered, self._answered = self._answered, None
        if answered is not None and answered[0] == self._generation:
            return answered[1]
        # The broker waits for a member that joins again, unless it has removed it before.
        self._is_waited_for = self.holds()
        try:
            assignment: bytes = await super()._do_join_and_sync_async()
        finally:
            self._is_waited_for = False
        self._answered = self._generation, assignment
        return assignment

    def _process_sync_group_response(self, response: object, send_time: float) -> bytes:
        assignment: bytes = super()._process_sync_group_response(response, send_time)
        self._settle(send_time)
        return assignment

    async def _on_join_complete_async(
        self, generation: int, member_id: str, protocol: str, member_assignment_bytes: bytes
    ) -> None:
        self._answered = None
        with self._guard:
            self._joined = Joined(generation, member_id, protocol, bytes(member_assignment_bytes))
        self._wake()

    def _handle_heartbeat_response(self, response: Any, send_time: float) -> None:  # noqa: ANN401 (the library's own)
        self._take_answer(response, send_time)
        super()._handle_heartbeat_response(response, send_time)

    def _needs_beat(self) -> bool:
        return not (
            self._heartbeat_enabled
            or self._generation.is_lost()
            or self.coordinator_id is None
            or self.heartbeat.poll_timeout_expired()
        )

    async def _is_beat_answered(self) -> bool:
        asked = self._generation
        request = HeartbeatRequest(
            group_id=self.group_id, generation_id=asked.generation_id, member_id=asked.member_id
        )
        # The library gives the connection of a coordinator an id of its own; the node's plain one has another connection.
        node = int(str(self.coordinator_id).removeprefix("coordinator-"))
        sent_at = self._clock()
        try:
            response = await self._manager.send(
                request, node_id=node, request_timeout_ms=self._patience * 1000
            )
        except (KafkaError, OSError, RuntimeError):
            # As the library says that a connection is gone. It connects anew when it is asked again; nothing is acknowledged until then.
            return False
        if self._generation.member_id == asked.member_id:
            self._take_answer(response, sent_at)
        return True

    def _take_answer(self, response: Any, sent_at: float) -> None:  # noqa: ANN401 (the library's own)
        # IllegalGeneration also says that the broker knows the member, but does not prolong its session: a round has ended whose answer
        # has not arrived, and a session after that the member is removed.
        error = for_code(response.error_code)
        if error is NoError:
            self._settle(sent_at)
        elif error is RebalanceInProgressError:
            self._acknowledge(
                sent_at if self._is_waited_for else min(sent_at, self._last_of_round())
            )
        elif error is UnknownMemberIdError:
            self._forget()

    def _settle(self, sent_at: float) -> None:
        """There was no rebalance, or one was over for this member, after *sent_at*."""
        self._settled_at = max(self._settled_at, sent_at)
        self._acknowledge(sent_at)

    def _acknowledge(self, sent_at: float) -> None:
        self._acknowledged_at = max(self._acknowledged_at, sent_at)

    def _last_of_round(self) -> float:
        """Up to when an acknowledged heartbeat counts in full: a round that waits for this member's join ends without it in the end."""
        return self._settled_at + self.config["max_poll_interval_ms"] / 1000 - self._patience

    def request_rejoin(self) -> None:
        super().request_rejoin()
        self._wake()

    def reset_generation(self, *given: object, **named: object) -> None:
        super().reset_generation(*given, **named)
        self._forget()
        self._wake()

    def _forget(self) -> None:
        self._acknowledged_at, self._is_waited_for = _NEVER, False


def _client_settings(settings: WireSettings) -> dict[str, Any]:
    login = settings.login or {}
    has_login, has_tls = settings.login is not None, settings.tls is not None
    protocol = f"{'SASL_' if has_login else ''}{'SSL' if has_tls else 'PLAINTEXT'}"
    return {
        **login,
        "bootstrap_servers": [f"{host}:{port}" for host, port in settings.addresses],
        "client_id": settings.client_id,
        "security_protocol": protocol,
        "ssl_context": settings.tls,
        "receive_message_max_bytes": _MOST_BYTES,
        "reconnect_backoff_max_ms": _MOST_BACKOFF_MS,
        "request_timeout_ms": int(settings.request_seconds * 1000),
        "socket_connection_setup_timeout_ms": int(settings.connect_seconds * 1000),
    }


@cache
def _prepare_library() -> None:
    # It reports each connection that is refused while a broker is away, at the level of errors.
    logging.getLogger("kafka").setLevel(logging.CRITICAL)
    # It makes a class for each version when it is first asked for, and loses one of two that are made at the same time.
    for answer in _ANSWERS:
        for version in range(answer.max_version + 1):
            answer[version]
