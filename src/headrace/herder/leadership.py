"""What the members of a group tell each other, and how its leader divides the connectors among them."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
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
_URL_IS_TAKEN: Final = 2
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


class Leadership:
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
        self._divided = frozenset[str]()
        self._strangers: Sequence[str] = ()
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
        self._taken_since: float | None = None
        self.flags = MemberFlag.UNDERSTANDS_LEAVING
        """What this worker says of itself when it joins next; written by any thread."""
        self.members: Sequence[GroupMember] = ()
        """Those of the last generation that this worker has led."""
        self.unplaced = frozenset[str]()
        """The connectors whose tasks fit on no worker of that generation."""

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
        if self._assignment.error != _URL_IS_TAKEN:
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
        found = self._strangers
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

    def refuse_taken_url(self) -> None:
        """Raise ``RetriableError`` when another worker has told the group the same URL; ``TaskFailedError`` after the time of a session.

        It may be this worker's own predecessor, which was killed while it joined.
        """
        if self.assignment.error != _URL_IS_TAKEN:
            self._taken_since = None
            return
        now = self._clock()
        self._taken_since = self._taken_since or now
        sentence = (
            f"Another worker of the group {self._settings.group!r} says that it is at {self._settings.url}, too. Requests for one would reach "
            "the other: give each worker its own rest.advertised.host.name and rest.advertised.port, or listeners."
        )
        if now - self._taken_since > self._settings.session:
            raise TaskFailedError(sentence)
        raise RetriableError(f"{sentence} It is asked again whether it has ended.")

    def must_divide_again(self) -> bool:
        """Whether connectors have come or gone since this worker, as the leader, has divided the work, or one does not fit where it is."""
        if not self.leads:
            return False
        stored = self._local.configs.connectors()
        return frozenset(stored) != self._divided or any(
            name in stored and not self._load(stored[name]).fits(each.notes.slots)
            for each in self.members
            if each.notes is not None
            for name in each.connectors
        )

    # -- asked by the membership ------------------------------------------------------------------------

    def protocols(self) -> Sequence[tuple[str, bytes]]:
        """What this worker runs, in both versions in which that can be said."""
        self._said_flags = self.flags
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
        newest = max(each.config_offset for each in found.values())
        own = found[leader]
        refused = _with_taken_urls(found)
        if newest > offset:
            behind = Assignment(
                version=version,
                error=_BEHIND,
                leader=leader,
                leader_url=own.url,
                config_offset=newest,
                leader_understands_leaving=True,
            )
            return dict.fromkeys(found, encoded_assignment(behind))
        self._strangers = sorted(each.url for each in found.values() if each.notes is None)
        configured = {
            name: self._load(stored) for name, stored in self._local.configs.connectors().items()
        }
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
        self.members = [
            GroupMember(
                url=said.url,
                connectors=rebalance.members[each].owned | answer.assigned[each],
                notes=said.notes,
            )
            for each, said in found.items()
            if each not in refused
        ]
        taken = Assignment(
            version=version,
            error=_URL_IS_TAKEN,
            leader=leader,
            leader_url=own.url,
            config_offset=offset,
            leader_understands_leaving=True,
        )
        answers = {
            each: encoded_assignment(
                taken
                if each in refused
                else Assignment(
                    version=version,
                    leader=leader,
                    leader_url=own.url,
                    config_offset=offset,
                    assigned=self._pieces(answer.assigned[each]),
                    revoked=self._pieces(answer.revoked[each]),
                    delay_ms=answer.delay_ms,
                    leader_understands_leaving=True,
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

    def _load(self, stored: StoredConnector) -> ConnectorLoad:
        return ConnectorLoad(
            tasks=len(self._local.configs.task_configs(stored.name)),
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


def _with_taken_urls(said: Mapping[str, MemberMetadata]) -> frozenset[str]:
    """Members that are new and say a URL that another one has. Those that were gone are not in the round any more."""
    first: dict[str, str] = {}
    by_age = sorted(
        said, key=lambda each: ((said[each].notes or MemberNotes()).generation < 0, each)
    )
    for each in by_age:
        first.setdefault(said[each].url, each)
    return frozenset(
        each
        for each, one in said.items()
        if first[one.url] != each and one.notes is not None and one.notes.generation < 0
    )


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
