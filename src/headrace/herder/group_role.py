"""What a worker says when it joins its group, and what it was told there."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Mapping, Sequence
from enum import Enum, auto
from typing import Final

from headrace import __version__
from headrace.connect.errors import RetriableError, TaskFailedError
from headrace.herder.coordination import HerderParts
from headrace.herder.group import GroupSettings, GroupStorage
from headrace.herder.group_leader import GroupLeader, Round
from headrace.herder.group_protocol import (
    REFUSED,
    UNREACHABLE_OFFSET,
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
    in_version,
)
from headrace.kafka.deadline import Clock
from headrace.kafka.membership import Joined, JoinedMember

_log = logging.getLogger(__name__)
# Seven tenths of what a broker takes as one record by default.
_LARGE_BYTES: Final = 734_000


class _UnreachableOffset(Enum):
    """How far a worker is with saying an offset that no one reaches, for which a leader of Kafka Connect forgets who has what.

    The next join is to say it, one has, or one was completed that has.
    """

    NONE = auto()
    ASKED = auto()
    SAID = auto()
    ANSWERED = auto()


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
        self._settings = settings
        self._storage = storage
        self._clock = clock
        self._assignment: Assignment | None = None
        self._names = frozenset[str]()
        self.as_leader = GroupLeader(parts.local, settings, clock, storage)
        """What this worker knows as the leader, of the last generation that it has led."""
        self.owned = frozenset[str]()
        """The connectors that this worker runs."""
        self.pieces: Mapping[str, frozenset[int]] = {}
        """In a mixed group, what of each connector was given to this worker: numbers of tasks, -1 for itself."""
        self._said_pieces: Pieces = {}
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
        self._unreachable_offset = _UnreachableOffset.NONE
        self.protocol = settings.protocol
        """The version that the group speaks since the last join."""

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
        was_by_task = self.is_by_task
        self._assignment = decoded_assignment(joined.assignment)
        if self.is_by_task and not was_by_task:
            # What the leader knows, and may have taken a part of.
            self.pieces = {name: frozenset(tasks) for name, tasks in self._said_pieces.items()}
        if self._assignment.error != REFUSED:
            # Until then it is new to the group.
            self.generation = joined.generation
        self._take_protocol(ProtocolVersion[joined.protocol.upper()])
        if self._unreachable_offset is _UnreachableOffset.SAID:
            self._unreachable_offset = _UnreachableOffset.ANSWERED
        self.member_id = joined.member_id
        self.leads = self._assignment.leader == joined.member_id
        return self._assignment

    def _take_protocol(self, protocol: ProtocolVersion) -> None:
        if protocol < self.protocol:
            _log.warning(
                "The group %r goes on with connect.protocol=%s, as a member of it does not know %s",
                self._settings.group,
                protocol.setting,
                self.protocol.setting,
            )
        self.protocol = protocol

    @property
    def is_eager(self) -> bool:
        """Whether all work stops before the group is joined again."""
        return self.protocol is ProtocolVersion.DEFAULT

    @property
    def is_by_task(self) -> bool:
        """Whether the leader divides connectors and tasks each by itself, as Kafka Connect does."""
        return self._assignment is not None and (
            self._assignment.is_by_task or (self.follows_java and self._settings.is_mixed)
        )

    def ask_to_be_forgotten(self) -> None:
        """Have the next join that is completed, and no later one, say an offset of the config topic that no one can have read."""
        self._unreachable_offset = _UnreachableOffset.ASKED

    @property
    def is_forgotten(self) -> bool:
        """Whether a join that said so has been completed."""
        return self._unreachable_offset is _UnreachableOffset.ANSWERED

    @property
    def has_something(self) -> bool:
        """Whether anything is assigned to this worker."""
        return bool(self.owned or self.pieces)

    def pieces_after(self, assignment: Assignment) -> dict[str, frozenset[int]]:
        """What of each connector is this worker's with this *assignment* by tasks."""
        after = dict(self.pieces)
        for name, tasks in assignment.revoked.items():
            after[name] = after.get(name, frozenset()) - frozenset(tasks)
        for name, tasks in assignment.assigned.items():
            after[name] = after.get(name, frozenset()) | frozenset(tasks)
        return {name: tasks for name, tasks in after.items() if tasks}

    def is_whole(self, name: str, tasks: frozenset[int]) -> bool:
        """Whether these are the connector itself and all the tasks that it has now."""
        return tasks.issuperset(self.as_leader.pieces([name])[name])

    def take(self, names: Collection[str]) -> None:
        """These are this worker's from now on."""
        self.owned |= frozenset(names)

    def lose(self, names: Collection[str]) -> None:
        """These are not any more."""
        self.owned -= frozenset(names)
        self.pieces = {name: tasks for name, tasks in self.pieces.items() if name not in names}

    def refuse_java_workers(self) -> None:
        """Raise ``TaskFailedError`` when a member of the group is no worker of headrace, and may not be one."""
        if self._settings.is_mixed:
            return
        found = self.as_leader.java_workers
        if self.follows_java:
            found = [self.assignment.leader_url]
        if found:
            raise TaskFailedError(
                f"The group {self._settings.group!r} has members that are workers of Kafka Connect ({', '.join(found)}). "
                "Stop them first: headrace takes over their connectors, offsets and states as they are."
            )

    @property
    def follows_java(self) -> bool:
        """Whether a worker of Kafka Connect leads, which would hand out what only its own kind can run."""
        return self._assignment is not None and not self._assignment.leader_understands_leaving

    def raise_if_refused(self) -> None:
        """Raise ``RetriableError`` when the leader has refused this worker, and ``TaskFailedError`` after the time of a session.

        One that has its URL may be its own predecessor, which was killed while it joined.
        """
        if self.assignment.error != REFUSED:
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
            self._names = frozenset(self.as_leader.configured())

    def must_divide_again(self) -> bool:
        """Whether connectors have come or gone since the work was divided, or it has to be divided otherwise, as the leader knows.

        Every member asks for the next rebalance, as in Kafka Connect: otherwise the others hear of it at their next heartbeat.
        """
        if self.leads:
            return self.as_leader.must_divide_again()
        return frozenset(self.as_leader.configured()) != self._names

    # -- asked by the membership ------------------------------------------------------------------------

    def protocols(self) -> Sequence[tuple[str, bytes]]:
        """What this worker runs, in each version that it speaks."""
        self._said_flags = self.flags
        self._names = frozenset(self.as_leader.configured())
        offset = self._storage().config_offset
        if self._unreachable_offset in (_UnreachableOffset.ASKED, _UnreachableOffset.SAID):
            # Again, where the answer was lost: the others may have begun the next join before this worker has heard of the last one.
            self._unreachable_offset, offset = _UnreachableOffset.SAID, UNREACHABLE_OFFSET
        said = self._metadata(self._said_flags, offset)
        return [
            (version.protocol, encoded_metadata(in_version(said, version)))
            for version in sorted(ProtocolVersion, reverse=True)
            if version <= self._settings.protocol
        ]

    @property
    def has_more_to_say(self) -> bool:
        """Whether it would say something else than when it joined: a request to join again that comes during a join is lost with it."""
        return self._unreachable_offset is _UnreachableOffset.ASKED or self._said_flags not in (
            None,
            self.flags,
        )

    def _metadata(self, flags: MemberFlag, config_offset: int) -> MemberMetadata:
        last, allocation = self._assignment, None
        # Whoever was removed joins again as someone new, within the same call of the library.
        self._said_pieces = {}
        if last is not None and self.has_something and self._own_id() == self.member_id:
            self._said_pieces = (
                {name: sorted(tasks) for name, tasks in self.pieces.items()}
                if self.is_by_task
                else self.as_leader.pieces(self.owned)
            )
            allocation = Assignment(
                leader=last.leader,
                leader_url=last.leader_url,
                config_offset=last.config_offset,
                assigned=self._said_pieces,
                leader_understands_leaving=True,
            )
        return MemberMetadata(
            url=self._settings.url,
            config_offset=config_offset,
            allocation=allocation,
            notes=MemberNotes(
                flags=flags,
                generation=self.generation,
                slots=self._settings.slots,
                version=__version__,
                topics=self.topics,
            ),
        )

    def assign(
        self, generation: int, protocol: str, leader: str, members: Sequence[JoinedMember]
    ) -> Mapping[str, bytes]:
        """What each member is given; asked only of the leader."""
        round_ = Round(
            generation=generation,
            last_generation=self.generation,
            version=ProtocolVersion[protocol.upper()],
            leader=leader,
            said={each.member_id: _said_by(each) for each in members},
            config_offset=self._storage().config_offset,
        )
        answers = {
            each: encoded_assignment(answer)
            for each, answer in self.as_leader.answers(round_).items()
        }
        self._warn_of_size(
            sum(map(len, answers.values())) + sum(len(each.metadata) for each in members)
        )
        return answers

    def _warn_of_size(self, size: int) -> None:
        if size > _LARGE_BYTES:
            _log.warning(
                "What the workers of the group %r say when the work is divided has %d bytes. Kafka keeps it in one record, of at most 1 MiB "
                "unless the brokers' message.max.bytes is raised; beyond that no worker can join. Use fewer connectors in one group, or "
                "raise it.",
                self._settings.group,
                size,
            )


def _said_by(member: JoinedMember) -> MemberMetadata:
    try:
        return decoded_metadata(member.metadata)
    except GroupFormatError as error:
        _log.warning("Member %s of the group says what cannot be read: %s", member.member_id, error)
        return MemberMetadata(url=member.member_id, config_offset=0)
