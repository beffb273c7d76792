"""How the leader of a group divides the connectors among its members, and what it knows of them since."""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

from headrace.config.connector_config import CONNECTOR_CLASS
from headrace.herder.assignor import AssignorMemory, ConnectorLoad, Member, Rebalance, assign
from headrace.herder.eager_assignor import dealt
from headrace.herder.group import GroupMember, GroupSettings
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

    assigned: Mapping[str, Pieces]
    revoked: Mapping[str, Pieces] = field(default_factory=dict[str, Pieces])
    delay_ms: int = 0


class GroupLeader:
    """Divides the work whenever this worker leads, on the membership's thread. What it knows since is read by any thread."""

    def __init__(self, local: LocalServices, settings: GroupSettings, clock: Clock) -> None:
        self._local = local
        self._settings = settings
        self._clock = clock
        self._memory = AssignorMemory()
        self._polled: dict[str, bool] = {}
        self._divided = frozenset[str]()
        self.strangers: Sequence[str] = ()
        """The URLs of the workers of Kafka Connect among the members."""
        self.members: Sequence[GroupMember] = ()
        """Those of the last generation that this worker has led."""
        self.unplaced = frozenset[str]()
        """The connectors whose tasks fit on no worker of that generation."""
        self.waiting: Mapping[str, str] = {}
        """Those that wait for a worker that is gone, with its URL."""

    def owner_url(self, name: str) -> str | None:
        """Where the worker answers that has the connector, or is given it; ``None`` when none has."""
        return next((each.url for each in self.members if name in each.connectors), None)

    def must_divide_again(self) -> bool:
        """Whether connectors have come or gone since the work was divided, or one does not fit where it is."""
        stored = self._local.configs.connectors()
        return frozenset(stored) != self._divided or any(
            name in stored and not self._load(stored[name]).fits(each.notes.slots)
            for each in self.members
            if each.notes is not None
            for name in each.connectors
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
        self.strangers = sorted(one.url for one in said.values() if one.notes is None)
        taken = {each: one for each, one in said.items() if each not in refused}
        division = self._divided_among(taken, round_)
        return {
            each: replace(nothing, error=REFUSED, refusal=refused[each])
            if each in refused
            else replace(
                nothing,
                assigned=division.assigned.get(each, {}),
                revoked=division.revoked.get(each, {}),
                delay_ms=division.delay_ms,
            )
            for each in said
        }

    def _divided_among(self, said: Mapping[str, MemberMetadata], round_: Round) -> _Division:
        stored = self._local.configs.connectors()
        configured = {name: self._load(each) for name, each in stored.items()}
        self._divided = frozenset(configured)
        members = {each: _member(one) for each, one in said.items()}
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

    def _dealt(
        self,
        configured: Mapping[str, ConnectorLoad],
        members: Mapping[str, Member],
        said: Mapping[str, MemberMetadata],
    ) -> _Division:
        """What each is given where all have stopped everything before they joined."""
        self._log_gone(said, {}, 0)
        # Who has joined in another protocol before runs on; it ends that now, and joins again.
        if any(each.owned for each in members.values()):
            self._remember(said, members, {}, unplaced=(), waiting={})
            return _Division(assigned={})
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
        self.members = [
            GroupMember(
                url=one.url,
                connectors=members[each].owned | assigned.get(each, frozenset()),
                notes=one.notes,
            )
            for each, one in said.items()
        ]

    def pieces(self, names: Collection[str]) -> Pieces:
        """The connectors with all their tasks, as they are told to the group."""
        tasks = self._local.configs.task_configs
        return {name: [ITSELF, *range(len(tasks(name)))] for name in names}

    def _load(self, stored: StoredConnector) -> ConnectorLoad:
        return ConnectorLoad(
            tasks=len(self._local.configs.task_configs(stored.name)),
            is_idle=stored.target_state == "STOPPED",
            must_fit=self._polled.get(stored.config.get(CONNECTOR_CLASS) or "", False),
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
