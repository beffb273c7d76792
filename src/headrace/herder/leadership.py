"""What the members of a group tell each other, and how its leader divides the connectors among them."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from headrace import __version__
from headrace.connect.errors import ConnectError, TaskFailedError
from headrace.herder.assignor import AssignorMemory, ConnectorLoad, Member, Rebalance, assign
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

_log = logging.getLogger(__name__)
# The connector itself, among the numbers of its tasks.
_ITSELF: Final = -1
_BEHIND: Final = 1


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


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupSettings:
    """What a worker says when it joins *group*: its *url*, with a slash at the end, and how many tasks it runs at once."""

    group: str
    url: str
    slots: int
    max_delay_ms: int


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

    def refuse_strangers(self) -> None:
        """Raise ``TaskFailedError`` when a member of the group is no worker of headrace."""
        found = self._strangers
        if self._assignment is not None and not self._assignment.leader_understands_leaving:
            found = [self._assignment.leader_url]
        if found:
            raise TaskFailedError(
                f"The group {self._settings.group!r} has members that are workers of Kafka Connect ({', '.join(found)}). "
                "Stop them first: headrace takes over their connectors, offsets and states as they are."
            )

    def must_divide_again(self) -> bool:
        """Whether connectors have come or gone since this worker, as the leader, has divided the work."""
        return self.leads and frozenset(self._local.configs.connectors()) != self._divided

    # -- asked by the membership ------------------------------------------------------------------------

    def protocols(self) -> Sequence[tuple[str, bytes]]:
        """What this worker runs, in both versions in which that can be said."""
        return [
            (version.protocol, encoded_metadata(self._metadata(version)))
            for version in (ProtocolVersion.SESSIONED, ProtocolVersion.COMPATIBLE)
        ]

    def _metadata(self, version: ProtocolVersion) -> MemberMetadata:
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
                flags=MemberFlag.UNDERSTANDS_LEAVING,
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
            name: ConnectorLoad(tasks=len(self._local.configs.task_configs(name)))
            for name in self._local.configs.connectors()
        }
        # A worker other than the leader has no way yet to have its tasks stored: it stands by, and leads when it is its turn. What it
        # still has from an earlier turn would never run there.
        rebalance = Rebalance(
            generation=generation,
            last_generation=self.generation,
            now_ms=int(self._clock() * 1000),
            configured=configured,
            members={each: _member(said, stands_by=each != leader) for each, said in found.items()},
            max_delay_ms=self._settings.max_delay_ms,
        )
        self._memory, answer = assign(self._memory, rebalance)
        self._divided = frozenset(configured)
        return {
            each: encoded_assignment(
                Assignment(
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


def _said_by(member: JoinedMember) -> MemberMetadata:
    try:
        return decoded_metadata(member.metadata)
    except GroupFormatError as error:
        _log.warning("Member %s of the group says what cannot be read: %s", member.member_id, error)
        return MemberMetadata(url=member.member_id, config_offset=0)


def _member(said: MemberMetadata, *, stands_by: bool) -> Member:
    assigned = {} if said.allocation is None else said.allocation.assigned
    notes = said.notes or MemberNotes()
    return Member(
        slots=notes.slots,
        owned=frozenset(assigned),
        leaving=bool(notes.flags & MemberFlag.LEAVING) or (stands_by and said.notes is not None),
        takes_nothing=said.notes is None,
    )
