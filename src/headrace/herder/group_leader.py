"""How the leader of a group divides the connectors among its members, and what it knows of them since."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from headrace.config.connector_config import CONNECTOR_CLASS
from headrace.herder.assignor import AssignorMemory, ConnectorLoad, Member, Rebalance, assign
from headrace.herder.eager_assignor import dealt
from headrace.herder.group import GroupMember, GroupSettings, GroupStorage
from headrace.herder.group_admission import refusals
from headrace.herder.group_protocol import (
    BEHIND,
    ITSELF,
    REFUSED,
    Assignment,
    MemberFlag,
    MemberMetadata,
    MemberNotes,
    Pieces,
    ProtocolVersion,
)
from headrace.herder.services import LocalServices
from headrace.herder.task_assignor import (
    Piece,
    PieceAnswer,
    PieceMemory,
    PieceRebalance,
    assign_pieces,
)
from headrace.kafka.deadline import Clock
from headrace.storage.protocols import StoredConnector

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Round:
    """A rebalance, as its *leader* sees it, which is this worker: what each member *said*, by their ids.

    *generation* is the one that is formed, *last_generation* the last one that this worker has completed. *config_offset* is how far it
    has read the config topic.
    """

    generation: int
    last_generation: int
    version: ProtocolVersion
    leader: str
    said: Mapping[str, MemberMetadata]
    config_offset: int


@dataclass(frozen=True, slots=True, kw_only=True)
class _Division:
    """What is new for each member, and what it gives up; everyone joins again after *delay_ms*, if that is not 0."""

    assigned: Mapping[str, Pieces] = field(default_factory=dict[str, Pieces])
    revoked: Mapping[str, Pieces] = field(default_factory=dict[str, Pieces])
    delay_ms: int = 0


class GroupLeader:
    """Divides the work whenever this worker leads, on the membership's thread. What it knows since is read by any thread."""

    def __init__(
        self,
        local: LocalServices,
        settings: GroupSettings,
        clock: Clock,
        storage: Callable[[], GroupStorage],
    ) -> None:
        self._local = local
        self._storage = storage
        self._settings = settings
        self._clock = clock
        self._memory = AssignorMemory()
        self._pieces_memory = PieceMemory()
        self._polled: dict[str, bool] = {}
        # With the offset up to which the config topic had been read, and how many classes were known.
        self._loads: tuple[tuple[int, int], Mapping[str, ConnectorLoad]] = ((-1, -1), {})
        # Connectors, or their pieces where these are divided.
        self._divided: frozenset[str] | frozenset[Piece] = frozenset[str]()
        self._is_by_task = False
        self.java_workers: Sequence[str] = ()
        """The URLs of the workers of Kafka Connect among the members."""
        self._tasks_of_java: Mapping[str, frozenset[str]] = {}
        self.members: Sequence[GroupMember] = ()
        """Those of the last generation that this worker has led."""
        self.unplaced = frozenset[str]()
        """The connectors whose tasks fit on no worker of that generation."""
        self.waiting: Mapping[str, str] = {}
        """Those that wait for a worker that is gone, with its URL."""

    def owner_url(self, name: str) -> str | None:
        """Where the worker answers that has the connector, or is given it; ``None`` when none has."""
        return next((each.url for each in self.members if name in each.connectors), None)

    def java_workers_with(self, name: str) -> Sequence[str]:
        """The URLs of the workers of Kafka Connect that have tasks of the connector, or had some until the work was last divided.

        Such a worker ends what is taken from it before it joins again, and says what it has when it does: then it has none.
        """
        return sorted(url for url, connectors in self._tasks_of_java.items() if name in connectors)

    def must_divide_again(self) -> bool:
        """Whether connectors have come or gone since the work was divided, or one does not fit where it is, or one fits that did not.

        In a mixed group, tasks as well.
        """
        configured = self.configured()
        if self._is_by_task:
            return self._configured_pieces(configured) != self._divided
        return frozenset(configured) != self._divided or any(
            self._is_misplaced(each, configured) for each in self.members
        )

    def _is_misplaced(self, member: GroupMember, configured: Mapping[str, ConnectorLoad]) -> bool:
        """Whether *member* has a connector that does not fit there, or could take one that no one has."""
        notes = member.notes
        if notes is None:
            return False

        def fits(name: str) -> bool:
            return configured[name].fits(notes.slots)

        takes = not notes.flags & (MemberFlag.LEAVING | MemberFlag.TAKES_NOTHING)
        return any(name in configured and not fits(name) for name in member.connectors) or (
            takes and any(name in configured and fits(name) for name in self.unplaced)
        )

    def learn_classes(self) -> None:
        """Find out whether connectors of each class need a slot for each task, which may import them: too slow while the group waits."""
        read_to, connectors = self._storage().config_offset, self._local.configs.connectors()
        for stored in connectors.values():
            name = stored.config.get(CONNECTOR_CLASS) or ""
            if name not in self._polled:
                found = self._local.validator.is_polled(name)
                # Of a class that is not here nothing is known, and it may be installed later.
                if found is not None:
                    self._polled[name] = found
        self._keep_loads(read_to, connectors)

    def configured(self) -> Mapping[str, ConnectorLoad]:
        """What each connector needs. It is kept until the config topic has more: a group with many connectors waits for the answer."""
        # Asked before the connectors are looked at: another thread may read on meanwhile.
        read_to = self._storage().config_offset
        if self._loads[0] != (read_to, len(self._polled)):
            self._keep_loads(read_to, self._local.configs.connectors())
        return self._loads[1]

    def _keep_loads(self, read_to: int, connectors: Mapping[str, StoredConnector]) -> None:
        known = read_to, len(self._polled)
        self._loads = known, {name: self._load(each) for name, each in connectors.items()}

    def answers(self, round_: Round) -> Mapping[str, Assignment]:
        """What each member is given."""
        said = round_.said
        refused = refusals(said, round_.leader)
        newest = max(one.config_offset for each, one in said.items() if each not in refused)
        nothing = Assignment(
            version=round_.version,
            leader=round_.leader,
            leader_url=said[round_.leader].url,
            config_offset=max(newest, round_.config_offset),
            leader_understands_leaving=True,
        )
        if newest > round_.config_offset:
            return dict.fromkeys(said, replace(nothing, error=BEHIND))
        self.java_workers = sorted(one.url for one in said.values() if one.notes is None)
        taken = {each: one for each, one in said.items() if each not in refused}
        self._is_by_task = self._settings.is_mixed and bool(self.java_workers)
        division = self._division(taken, round_)
        self._tasks_of_java = {
            one.url: _with_tasks(_reported(one)) | _with_tasks(_pieces(division.assigned.get(each)))
            for each, one in taken.items()
            if one.notes is None
        }
        return {
            each: replace(nothing, error=REFUSED, refusal=refused[each])
            if each in refused
            else replace(
                nothing,
                assigned=division.assigned.get(each, {}),
                revoked=division.revoked.get(each, {}),
                delay_ms=division.delay_ms,
                is_by_task=self._is_by_task,
            )
            for each in said
        }

    def _division(self, said: Mapping[str, MemberMetadata], round_: Round) -> _Division:
        is_eager = round_.version is ProtocolVersion.DEFAULT
        if is_eager and any(_reported(one) for one in said.values()):
            # Who has joined in another protocol before runs on; it ends that now, and joins again.
            return _Division()
        if self._is_by_task:
            return self._divided_by_task(said, round_)
        self._pieces_memory = PieceMemory()
        return self._divided_among(said, round_)

    def _divided_among(self, said: Mapping[str, MemberMetadata], round_: Round) -> _Division:
        configured = self.configured()
        self._divided = frozenset(configured)
        members = {
            each: _member(one, takes_nothing=one.notes is None) for each, one in said.items()
        }
        if round_.version is ProtocolVersion.DEFAULT:
            return self._dealt(configured, members, said)
        rebalance = Rebalance(
            generation=round_.generation,
            last_generation=round_.last_generation,
            now_ms=int(self._clock() * 1000),
            configured=configured,
            members=members,
            max_delay_ms=self._settings.max_delay_ms,
        )
        self._memory, answer = assign(self._memory, rebalance)
        waiting = {name: self._memory.assigned[name] for name in answer.waiting}
        self._log_gone(said, waiting, answer.delay_ms)
        self._remember(said, members, answer.assigned, unplaced=answer.unplaced, waiting=waiting)
        return _Division(
            assigned={each: self.pieces(names) for each, names in answer.assigned.items()},
            revoked={each: self.pieces(names) for each, names in answer.revoked.items()},
            delay_ms=answer.delay_ms,
        )

    def _divided_by_task(self, said: Mapping[str, MemberMetadata], round_: Round) -> _Division:
        """As a leader of Kafka Connect would divide it, for members of both kinds."""
        configured = self._configured_pieces(self.configured())
        self._divided = configured
        members = {each: _member(one, takes_nothing=False) for each, one in said.items()}
        takers = frozenset(each for each, member in members.items() if member.takes)
        reports = {each: _reported(one) for each, one in said.items()}
        if round_.version is ProtocolVersion.DEFAULT:
            pieces = sorted(configured, key=lambda piece: (piece[1] != ITSELF, piece))
            given, _ = dealt(pieces, takers, lambda _piece, _member: True)
            answer = PieceAnswer(
                assigned={each: frozenset(given.get(each, ())) for each in said},
                revoked={},
                delay_ms=0,
            )
        else:
            rebalance = PieceRebalance(
                generation=round_.generation,
                last_generation=round_.last_generation,
                now_ms=int(self._clock() * 1000),
                configured=configured,
                reports=reports,
                leaving=frozenset(each for each, member in members.items() if member.leaving),
                takers=takers,
                max_delay_ms=self._settings.max_delay_ms,
            )
            self._pieces_memory, answer = assign_pieces(self._pieces_memory, rebalance)
        self._log_gone(said, {}, 0)
        self.unplaced, self.waiting = frozenset(), {}
        self._note_members(
            said,
            {
                each: frozenset(
                    name
                    for name, number in reports[each] | answer.assigned[each]
                    if number == ITSELF
                )
                for each in said
            },
        )
        return _Division(
            assigned={each: as_told(pieces) for each, pieces in answer.assigned.items()},
            revoked={each: as_told(pieces) for each, pieces in answer.revoked.items()},
            delay_ms=answer.delay_ms,
        )

    def _configured_pieces(self, names: Collection[str]) -> frozenset[Piece]:
        return frozenset(
            (name, number) for name, numbers in self.pieces(names).items() for number in numbers
        )

    def _dealt(
        self,
        configured: Mapping[str, ConnectorLoad],
        members: Mapping[str, Member],
        said: Mapping[str, MemberMetadata],
    ) -> _Division:
        """What each is given where all have stopped everything before they joined."""
        self._log_gone(said, {}, 0)
        given, unplaced = dealt(
            sorted(configured),
            [each for each, member in members.items() if member.takes],
            lambda name, each: configured[name].fits(members[each].slots),
        )
        assigned = {each: frozenset(names) for each, names in given.items()}
        self._remember(said, members, assigned, unplaced=unplaced, waiting={})
        return _Division(assigned={each: self.pieces(names) for each, names in given.items()})

    def _remember(
        self,
        said: Mapping[str, MemberMetadata],
        members: Mapping[str, Member],
        assigned: Mapping[str, frozenset[str]],
        *,
        unplaced: Collection[str],
        waiting: Mapping[str, str],
    ) -> None:
        can_take = any(each.takes for each in members.values())
        self.unplaced = frozenset(unplaced if can_take else ())
        self.waiting = waiting
        self._note_members(
            said,
            {each: members[each].owned | assigned.get(each, frozenset()) for each in said},
        )

    def _note_members(
        self, said: Mapping[str, MemberMetadata], connectors: Mapping[str, frozenset[str]]
    ) -> None:
        """What each has, or is given; what is being taken from it is its own until it has joined again."""
        self.members = [
            GroupMember(url=one.url, connectors=connectors[each], notes=one.notes)
            for each, one in said.items()
        ]

    def pieces(self, names: Collection[str]) -> Pieces:
        """The connectors with all their tasks, as they are told to the group."""
        tasks = self._local.configs.task_configs
        return {name: [ITSELF, *range(len(tasks(name)))] for name in names}

    def _load(self, stored: StoredConnector) -> ConnectorLoad:
        is_polled = self._polled.get(stored.config.get(CONNECTOR_CLASS) or "", False)
        return ConnectorLoad(
            tasks=len(self._local.configs.task_configs(stored.name)),
            is_idle=stored.target_state == "STOPPED",
            # Tasks of an earlier configuration say nothing: who runs it finds out how many it has now.
            must_fit=is_polled and self._storage().published_tasks(stored.name) is not None,
        )

    def _log_gone(
        self, said: Mapping[str, MemberMetadata], waiting: Mapping[str, str], delay_ms: int
    ) -> None:
        urls = {one.url for one in said.values()}
        for each in self.members:
            if each.url in urls:
                continue
            count = sum(url == each.url for url in waiting.values())
            if count:
                _log.warning(
                    "The worker at %s is gone. Its connectors (%d) wait for it for up to %g s (scheduled.rebalance.max.delay.ms)",
                    each.url,
                    count,
                    delay_ms / 1e3,
                )
            else:
                _log.info("The worker at %s has left the group", each.url)


def as_told(pieces: Iterable[Piece]) -> Pieces:
    """In the form in which members are told."""
    told: dict[str, list[int]] = {}
    for name, number in sorted(pieces):
        told.setdefault(name, []).append(number)
    return told


def _reported(said: MemberMetadata) -> frozenset[Piece]:
    return _pieces(None if said.allocation is None else said.allocation.assigned)


def _pieces(told: Pieces | None) -> frozenset[Piece]:
    return frozenset((name, number) for name, numbers in (told or {}).items() for number in numbers)


def _with_tasks(pieces: Iterable[Piece]) -> frozenset[str]:
    return frozenset(name for name, number in pieces if number != ITSELF)


def _member(said: MemberMetadata, *, takes_nothing: bool) -> Member:
    """A member; it *takes_nothing* where it is of a kind that cannot be given anything."""
    assigned = {} if said.allocation is None else said.allocation.assigned
    notes = said.notes or MemberNotes()
    return Member(
        slots=notes.slots,
        owned=frozenset(assigned),
        leaving=bool(notes.flags & MemberFlag.LEAVING),
        takes_nothing=takes_nothing or bool(notes.flags & MemberFlag.TAKES_NOTHING),
        url=said.url,
    )
