"""What a worker says when it joins its group, and what it was told there."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Final

from headrace import __version__
from headrace.connect.errors import RetriableError, TaskFailedError
from headrace.herder.coordination import HerderParts
from headrace.herder.group import GroupSettings, GroupStorage
from headrace.herder.group_leader import GroupLeader, Round
from headrace.herder.group_protocol import (
    REFUSED,
    Assignment,
    GroupFormatError,
    MemberFlag,
    MemberMetadata,
    MemberNotes,
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
        self.as_leader = GroupLeader(parts.local, settings, clock)
        """What this worker knows as the leader, of the last generation that it has led."""
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
        self._assignment = decoded_assignment(joined.assignment)
        if self._assignment.error != REFUSED:
            # Until then it is new to the group.
            self.generation = joined.generation
        self._take_protocol(ProtocolVersion[joined.protocol.upper()])
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

    def take(self, names: Collection[str]) -> None:
        """These are this worker's from now on."""
        self.owned |= frozenset(names)

    def lose(self, names: Collection[str]) -> None:
        """These are not any more."""
        self.owned -= frozenset(names)

    def refuse_strangers(self) -> None:
        """Raise ``TaskFailedError`` when a member of the group is no worker of headrace."""
        found = self.as_leader.strangers
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
        if self.assignment.error != REFUSED:
            self._refused_since = None
            return
        now = self._clock()
        self._refused_since = now if self._refused_since is None else self._refused_since
        sentence = f"The group {self._settings.group!r} does not take this worker. {self.assignment.refusal}"
        if now - self._refused_since > self._settings.session:
            raise TaskFailedError(sentence)
        raise RetriableError(sentence)

    # -- asked by the membership ------------------------------------------------------------------------

    def protocols(self) -> Sequence[tuple[str, bytes]]:
        """What this worker runs, in each version that it speaks."""
        self._said_flags = self.flags
        said = self._metadata(self._said_flags)
        return [
            (version.protocol, encoded_metadata(in_version(said, version)))
            for version in sorted(ProtocolVersion, reverse=True)
            if version <= self._settings.protocol
        ]

    @property
    def has_more_to_say(self) -> bool:
        """Whether its flags have changed since it joined: a request to join again that comes during a join is lost with it."""
        return self._said_flags is not None and self._said_flags != self.flags

    def _metadata(self, flags: MemberFlag) -> MemberMetadata:
        last, allocation = self._assignment, None
        # Whoever was removed joins again as someone new, within the same call of the library.
        if last is not None and self.owned and self._own_id() == self.member_id:
            allocation = Assignment(
                leader=last.leader,
                leader_url=last.leader_url,
                config_offset=last.config_offset,
                assigned=self.as_leader.pieces(self.owned),
                leader_understands_leaving=True,
            )
        return MemberMetadata(
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
