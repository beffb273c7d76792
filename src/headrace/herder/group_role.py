"""What the members of a group tell each other, and how its leader divides the connectors among them."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, Protocol
from urllib.parse import urlsplit

from headrace import __version__
from headrace.config.connector_config import CONNECTOR_CLASS
from headrace.connect.errors import ConnectError, RetriableError, TaskFailedError
from headrace.herder.assignor import (
    AssignorMemory,
    ConnectorLoad,
    GroupAssignment,
    Member,
    Rebalance,
    assign,
)
from headrace.herder.coordination import HerderParts
from headrace.herder.group_protocol import (
    Assignment,
    GroupFormatError,
    MemberFlag,
    MemberMetadata,
    MemberNotes,
    Pieces,
    ProtocolVersion,
    decoded_assignment,
    decoded_metadata,
    encoded_assignment,
    encoded_metadata,
)
from headrace.kafka.deadline import Clock
from headrace.kafka.membership import Joined, JoinedMember
from headrace.storage.protocols import StoredConnector

_log = logging.getLogger(__name__)
# The connector itself, among the numbers of its tasks.
_ITSELF: Final = -1
_BEHIND: Final = 1
# Not among Kafka Connect's, and sent to workers of headrace alone.
_REFUSED: Final = 2
_URL_IS_TAKEN: Final = (
    "Another worker of it is at {}, too, so that requests for one would reach the other: give each worker its own "
    "rest.advertised.host.name and rest.advertised.port, or listeners."
)
_OTHER_TOPICS: Final = (
    "It has other topics than the group's leader: {}. The leader has {}. Give all workers of a group the same topics; if one was deleted "
    "and made again, stop all workers before they are started with it."
)
# Seven tenths of what a broker takes as one record by default.
_LARGE_BYTES: Final = 734_000


def worker_name(url: str) -> str:
    """The id of the worker that others reach at *url*, as statuses have it. Pure."""
    return urlsplit(url).netloc


class GroupStorage(Protocol):
    """The topics that the workers of a group share, as far as this worker has read them."""

    def take_lead(self) -> None:
        """Keep an earlier leader from writing, also one that has begun to; raises :class:`~headrace.connect.errors.RetriableError`."""
        ...

    def refresh(self) -> None:
        """See everything committed before this call; raises ``RetriableError``."""
        ...

    def take_arrived(self) -> None:
        """See what has arrived by now, without waiting."""
        ...

    def flush(self) -> bool:
        """Wait until the states that were put are written, for some seconds at most; returns whether they are."""
        ...

    @property
    def failure(self) -> ConnectError | None:
        """Why Kafka has not taken states that were put; ``None`` while all is well."""
        ...

    @property
    def config_offset(self) -> int:
        """The offset after the last record of the config topic that was read."""
        ...

    def start_number(self, connector: str) -> int:
        """Another number each time a configuration of that connector has been read, also the same one again, or that it is stopped."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupSettings:
    """What a worker says when it joins *group*: its *url*, with a slash at the end, and how many tasks it runs at once.

    *max_delay_ms* is ``scheduled.rebalance.max.delay.ms``; *hand_over* is how long its connectors may take to be taken over when it
    leaves, *session* ``session.timeout.ms``, both in seconds.
    """

    group: str
    url: str
    slots: int
    max_delay_ms: int
    hand_over: float = 20.0
    session: float = 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupMember:
    """A member of a generation, as its leader knows it: at *url*, with the *connectors* that it has or is given.

    *notes* are ``None`` for a worker of Kafka Connect.
    """

    url: str
    connectors: frozenset[str]
    notes: MemberNotes | None


class WorkerRole:
    """What the members tell each other: a :class:`~headrace.kafka.membership.GroupRole`, and what it has said.

    The membership's thread asks the role; the others are written by the coordination's thread and read by any.
    """

    def __init__(
        self,
        parts: HerderParts,
        settings: GroupSettings,
        storage: Callable[[], GroupStorage],
        clock: Clock,
        *,
        member_id: Callable[[], str],
    ) -> None:
        self._own_id = member_id
        self._local = parts.local
        self._settings = settings
        self._storage = storage
        self._clock = clock
        self._memory = AssignorMemory()
        self._polled: dict[str, bool] = {}
        # With the offset up to which the config topic had been read.
        self._loads: tuple[int | None, Mapping[str, ConnectorLoad]] = (None, {})
        self._divided = frozenset[str]()
        self._assignment: Assignment | None = None
        self.owned = frozenset[str]()
        """The connectors that this worker runs."""
        self.member_id = ""
        """As which this worker joined last."""
        self.generation = -1
        """The last one that was joined; -1 before."""
        self.leads = False
        """Whether this worker led that generation."""
        self._said_flags: MemberFlag | None = None
        self._refused_since: float | None = None
        self.topics = ""
        """Those that this worker takes for the group's, in words; written before it joins."""
        self.flags = MemberFlag.UNDERSTANDS_LEAVING
        """What this worker says of itself when it joins next; written by any thread."""
        self.members: Sequence[GroupMember] = ()
        """Those of the last generation that this worker has led."""
        self.unplaced = frozenset[str]()
        """The connectors whose tasks fit on no worker of that generation."""
        self.waiting: Mapping[str, str] = {}
        """Those that wait for a worker that is gone, with its URL."""

    @property
    def has_joined(self) -> bool:
        """Whether the group has been joined at least once."""
        return self._assignment is not None

    @property
    def assignment(self) -> Assignment:
        """The last one that was joined for."""
        assert self._assignment is not None
        return self._assignment

    @property
    def leader_url(self) -> str | None:
        """Where the leader answers requests; ``None`` while there is none."""
        return None if self._assignment is None else self._assignment.leader_url or None

    def joined(self, joined: Joined) -> Assignment:
        """Take in a join that was completed; returns what the leader has assigned."""
        self._assignment = decoded_assignment(joined.assignment)
        if self._assignment.error != _REFUSED:
            # Until then it is new to the group.
            self.generation = joined.generation
        self.member_id = joined.member_id
        self.leads = self._assignment.leader == joined.member_id
        return self._assignment

    def take(self, names: Collection[str]) -> None:
        """These are this worker's from now on."""
        self.owned |= frozenset(names)

    def lose(self, names: Collection[str]) -> None:
        """These are not any more."""
        self.owned -= frozenset(names)

    def owner_url(self, name: str) -> str | None:
        """Where the worker answers that has the connector, or is given it, as the leader knows; ``None`` when none has."""
        return next((each.url for each in self.members if name in each.connectors), None)

    def refuse_strangers(self) -> None:
        """Raise ``TaskFailedError`` when a member of the group is no worker of headrace."""
        found = sorted(each.url for each in self.members if each.notes is None)
        if self.follows_stranger:
            found = [self.assignment.leader_url]
        if found:
            raise TaskFailedError(
                f"The group {self._settings.group!r} has members that are workers of Kafka Connect ({', '.join(found)}). "
                "Stop them first: headrace takes over their connectors, offsets and states as they are."
            )

    @property
    def follows_stranger(self) -> bool:
        """Whether a worker of Kafka Connect leads, which would hand out what only its own kind can run."""
        return self._assignment is not None and not self._assignment.leader_understands_leaving

    def raise_if_refused(self) -> None:
        """Raise ``RetriableError`` when the leader has refused this worker, and ``TaskFailedError`` after the time of a session.

        One that has its URL may be its own predecessor, which was killed while it joined.
        """
        if self.assignment.error != _REFUSED:
            self._refused_since = None
            return
        now = self._clock()
        self._refused_since = now if self._refused_since is None else self._refused_since
        sentence = f"The group {self._settings.group!r} does not take this worker. {self.assignment.refusal}"
        if now - self._refused_since > self._settings.session:
            raise TaskFailedError(sentence)
        raise RetriableError(sentence)

    def note_divided(self) -> None:
        """What was assigned is about all connectors that were read, unless this worker has read on since it joined."""
        if self._storage().config_offset <= self.assignment.config_offset:
            self._divided = frozenset(self._configured())

    def must_divide_again(self) -> bool:
        """Whether connectors have come or gone since the work was divided, or one does not fit where it is, as the leader knows.

        Every member asks for the next rebalance, as in Kafka Connect: otherwise the others hear of it at their next heartbeat.
        """
        configured = self._configured()
        if frozenset(configured) != self._divided:
            return True
        return self.leads and any(
            name in configured and not configured[name].fits(each.notes.slots)
            for each in self.members
            if each.notes is not None
            for name in each.connectors
        )

    # -- asked by the membership ------------------------------------------------------------------------

    def protocols(self) -> Sequence[tuple[str, bytes]]:
        """What this worker runs, in both versions in which that can be said."""
        self._said_flags = self.flags
        self._divided = frozenset(self._configured())
        return [
            (version.protocol, encoded_metadata(self._metadata(version, self._said_flags)))
            for version in (ProtocolVersion.SESSIONED, ProtocolVersion.COMPATIBLE)
        ]

    @property
    def has_more_to_say(self) -> bool:
        """Whether its flags have changed since it joined: a request to join again that comes during a join is lost with it."""
        return self._said_flags is not None and self._said_flags != self.flags

    def _metadata(self, version: ProtocolVersion, flags: MemberFlag) -> MemberMetadata:
        last, allocation = self._assignment, None
        # Whoever was removed joins again as someone new, within the same call of the library.
        if last is not None and self.owned and self._own_id() == self.member_id:
            allocation = Assignment(
                version=version,
                leader=last.leader,
                leader_url=last.leader_url,
                config_offset=last.config_offset,
                assigned=self._pieces(self.owned),
                leader_understands_leaving=True,
            )
        return MemberMetadata(
            version=version,
            url=self._settings.url,
            config_offset=self._storage().config_offset,
            allocation=allocation,
            notes=MemberNotes(
                flags=flags,
                generation=self.generation,
                slots=self._settings.slots,
                version=__version__,
                topics=self.topics,
            ),
        )

    def _pieces(self, names: Collection[str]) -> Pieces:
        tasks = self._local.configs.task_configs
        return {name: [_ITSELF, *range(len(tasks(name)))] for name in names}

    def assign(
        self, generation: int, protocol: str, leader: str, members: Sequence[JoinedMember]
    ) -> Mapping[str, bytes]:
        """What each member is given; asked only of the leader."""
        version = ProtocolVersion[protocol.upper()]
        found = {each.member_id: _said_by(each) for each in members}
        offset = self._storage().config_offset
        own = found[leader]
        refused = _refusals(found, leader)
        newest = max(said.config_offset for each, said in found.items() if each not in refused)
        nothing = Assignment(
            version=version,
            leader=leader,
            leader_url=own.url,
            config_offset=max(newest, offset),
            leader_understands_leaving=True,
        )
        if newest > offset:
            return dict.fromkeys(found, encoded_assignment(replace(nothing, error=_BEHIND)))
        configured = self._configured()
        rebalance = Rebalance(
            generation=generation,
            last_generation=self.generation,
            now_ms=int(self._clock() * 1000),
            configured=configured,
            members={each: _member(said) for each, said in found.items() if each not in refused},
            max_delay_ms=self._settings.max_delay_ms,
        )
        self._memory, answer = assign(self._memory, rebalance)
        self._log_gone({each.url for each in found.values()}, answer)
        self._divided = frozenset(configured)
        can_take = any(each.takes for each in rebalance.members.values())
        self.unplaced = answer.unplaced if can_take else frozenset()
        self.waiting = {name: self._memory.assigned[name] for name in answer.waiting}
        self.members = [
            GroupMember(
                url=said.url,
                connectors=rebalance.members[each].owned | answer.assigned[each],
                notes=said.notes,
            )
            for each, said in found.items()
            if each not in refused
        ]
        answers = {
            each: encoded_assignment(
                replace(nothing, error=_REFUSED, refusal=refused[each])
                if each in refused
                else replace(
                    nothing,
                    assigned=self._pieces(answer.assigned[each]),
                    revoked=self._pieces(answer.revoked[each]),
                    delay_ms=answer.delay_ms,
                )
            )
            for each in found
        }
        self._warn_of_size(
            sum(map(len, answers.values())) + sum(len(each.metadata) for each in members)
        )
        return answers

    def _log_gone(self, urls: Collection[str], answer: GroupAssignment) -> None:
        for each in self.members:
            if each.url in urls:
                continue
            waiting = sum(self._memory.assigned[name] == each.url for name in answer.waiting)
            if waiting:
                _log.warning(
                    "The worker at %s is gone. Its connectors (%d) wait for it for up to %g s (scheduled.rebalance.max.delay.ms)",
                    each.url,
                    waiting,
                    answer.delay_ms / 1e3,
                )
            else:
                _log.info("The worker at %s has left the group", each.url)

    def _warn_of_size(self, size: int) -> None:
        if size > _LARGE_BYTES:
            _log.warning(
                "What the workers of the group %r say when the work is divided has %d bytes. Kafka keeps it in one record, of at most 1 MiB "
                "unless the brokers' message.max.bytes is raised; beyond that no worker can join. Use fewer connectors in one group, or "
                "raise it.",
                self._settings.group,
                size,
            )

    def _configured(self) -> Mapping[str, ConnectorLoad]:
        """What each connector needs. It is kept until the config topic has more: a group with many connectors waits for the answer."""
        offset = self._storage().config_offset
        read_to, loads = self._loads
        if read_to != offset:
            stored = self._local.configs.connectors()
            loads = {name: self._load(each) for name, each in stored.items()}
            self._loads = offset, loads
        return loads

    def _load(self, stored: StoredConnector) -> ConnectorLoad:
        return ConnectorLoad(
            tasks=len(self._local.configs.task_configs(stored.name)),
            is_idle=stored.target_state == "STOPPED",
            must_fit=self._polled.get(stored.config.get(CONNECTOR_CLASS) or "", False),
        )

    def learn_classes(self) -> None:
        """Find out whether connectors of each class need a slot for each task, which may import them: too slow while the group waits."""
        for stored in self._local.configs.connectors().values():
            name = stored.config.get(CONNECTOR_CLASS) or ""
            if name not in self._polled:
                found = self._local.validator.is_polled(name)
                # Of a class that is not here nothing is known, and it may be installed later.
                if found is not None:
                    self._polled[name] = found
                    self._loads = (None, {})


def _refusals(said: Mapping[str, MemberMetadata], leader: str) -> dict[str, str]:
    """Why new members cannot be in the group: they have other topics than its *leader*, or a URL that another member has."""
    first: dict[str, str] = {}
    for each in sorted(said, key=lambda each: (_is_new(said[each]), each)):
        first.setdefault(said[each].url, each)
    topics = _topics(said[leader])
    refused = dict[str, str]()
    for each, one in said.items():
        if not _is_new(one) or each == leader:
            continue
        if first[one.url] != each:
            refused[each] = _URL_IS_TAKEN.format(one.url)
        elif topics and _topics(one) not in ("", topics):
            refused[each] = _OTHER_TOPICS.format(_topics(one), topics)
    return refused


def _is_new(said: MemberMetadata) -> bool:
    return said.notes is not None and said.notes.generation < 0


def _topics(said: MemberMetadata) -> str:
    return "" if said.notes is None else said.notes.topics


def _said_by(member: JoinedMember) -> MemberMetadata:
    try:
        return decoded_metadata(member.metadata)
    except GroupFormatError as error:
        _log.warning("Member %s of the group says what cannot be read: %s", member.member_id, error)
        return MemberMetadata(url=member.member_id, config_offset=0)


def _member(said: MemberMetadata) -> Member:
    assigned = {} if said.allocation is None else said.allocation.assigned
    notes = said.notes or MemberNotes()
    return Member(
        slots=notes.slots,
        owned=frozenset(assigned),
        leaving=bool(notes.flags & MemberFlag.LEAVING),
        takes_nothing=said.notes is None or bool(notes.flags & MemberFlag.TAKES_NOTHING),
        url=said.url,
    )
