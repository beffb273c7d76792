"""Which worker of a group runs which connector. Pure: the leader calls it once in each rebalance.

A connector goes with all its tasks. What moves is revoked in one rebalance and given to another worker in the next, when no one has
it (KIP-415); what a worker that is gone had waits for ``scheduled.rebalance.max.delay.ms``, unless it comes back before. A worker that
leaves on purpose has handed everything over before (KIP-995), and nothing waits.
"""

from __future__ import annotations

import heapq
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import chain
from math import lcm
from typing import Final, NamedTuple

_FOLLOW_UP_MS: Final = 1


class ConnectorLoad(NamedTuple):
    """What a connector needs: *tasks*, which must all run at once where *must_fit* is set, as those of a polled connector.

    One that *is_idle* is stopped, and takes no part of a worker.
    """

    tasks: int
    must_fit: bool = False
    is_idle: bool = False

    @property
    def weight(self) -> int:
        """What it counts for; one without tasks is run as well."""
        return 0 if self.is_idle else max(1, self.tasks)

    def fits(self, slots: int) -> bool:
        """Whether a worker with so many slots can run it."""
        return not self.must_fit or self.tasks <= max(1, slots)


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """A worker as it joined: how many tasks it runs at once, and the connectors that it has.

    *url* is where it is reached; one that comes back has a new id, but the same URL. One that is *leaving* gives up what it has. One that
    *takes_nothing* keeps it, and is given nothing more.
    """

    slots: int
    owned: frozenset[str] = frozenset()
    leaving: bool = False
    takes_nothing: bool = False
    url: str = ""

    @property
    def takes(self) -> bool:
        """Whether it may be given connectors."""
        return not (self.leaving or self.takes_nothing)


@dataclass(frozen=True, slots=True, kw_only=True)
class AssignorMemory:
    """What a leader remembers of the rebalance before. It is lost when the leader changes, after which nothing waits.

    *assigned* are the connectors that some member had then, or that waited, with the URL of that member; *planned* are those that had to
    be given up, with the members for whom. *scheduled_ms* is when waiting ends.
    """

    generation: int = -1
    members: frozenset[str] = frozenset()
    assigned: Mapping[str, str] = field(default_factory=dict[str, str])
    planned: Mapping[str, str] = field(default_factory=dict[str, str])
    scheduled_ms: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Rebalance:
    """What the leader knows when it assigns.

    *generation* is the one that is formed, *last_generation* the last one that this leader completed. *now_ms* is on any clock that
    does not go back. *max_delay_ms* is ``scheduled.rebalance.max.delay.ms``.
    """

    generation: int
    last_generation: int
    now_ms: int
    configured: Mapping[str, ConnectorLoad]
    members: Mapping[str, Member]
    max_delay_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupAssignment:
    """The answer: what is new for each member, and what it gives up.

    Everyone joins again after *delay_ms*, if that is not 0. *unplaced* are connectors whose tasks fit on no member, *waiting* those of
    members that are gone.
    """

    assigned: Mapping[str, frozenset[str]]
    revoked: Mapping[str, frozenset[str]]
    delay_ms: int
    unplaced: frozenset[str]
    waiting: frozenset[str]


def assign(memory: AssignorMemory, rebalance: Rebalance) -> tuple[AssignorMemory, GroupAssignment]:
    """Give every connector to one member, with as few moves as an even load allows.

    No connector is given to a member while another has it.
    """
    members, configured = rebalance.members, rebalance.configured
    owners = Counter(chain.from_iterable(member.owned for member in members.values()))
    before = _previously_assigned(memory, rebalance)
    back = {each.url for each in members.values() if each.takes}
    revoked = _revoked_whatever_the_loads(rebalance, owners)
    lost = frozenset(
        name
        for name in before.keys() & configured.keys() - owners.keys()
        if before[name] not in back
    )
    scheduled = _scheduled(memory, rebalance, lost)
    waiting = lost if scheduled is not None else frozenset[str]()
    free = frozenset(configured) - owners.keys() - waiting

    loads = _Loads(configured, members, revoked)
    unplaced = loads.place(free, memory.planned)
    moves = loads.evened() if scheduled is None else {}
    for name, (origin, _) in moves.items():
        revoked[origin] |= {name}

    assigned = {each: loads.new(each) for each in members}
    given_up = frozenset[str]().union(*revoked.values())
    kept = frozenset(owners) - given_up
    delay_ms = 0 if scheduled is None else scheduled - rebalance.now_ms
    if given_up:
        delay_ms = min(delay_ms or _FOLLOW_UP_MS, _FOLLOW_UP_MS)
    places = {name: before[name] for name in waiting}
    for each, member in members.items():
        places.update(dict.fromkeys(member.owned & kept | assigned[each], member.url))
    remembered = AssignorMemory(
        generation=rebalance.generation,
        members=frozenset(members),
        assigned=places,
        planned={name: target for name, (_, target) in moves.items()},
        scheduled_ms=scheduled,
    )
    answer = GroupAssignment(
        assigned=assigned, revoked=revoked, delay_ms=delay_ms, unplaced=unplaced, waiting=waiting
    )
    return remembered, answer


def _revoked_whatever_the_loads(
    rebalance: Rebalance, owners: Counter[str]
) -> dict[str, frozenset[str]]:
    """What each member gives up even if all have the same load: all if it leaves, otherwise what it must not have, or what does not fit it."""
    members, configured = rebalance.members, rebalance.configured
    # Connectors that are gone, and those that two members have after one was thought to be dead.
    unwanted = owners.keys() - configured.keys()
    unwanted |= {name for name, count in owners.items() if count > 1}
    least = min((each.slots for each in members.values()), default=0)
    large = {name for name, load in configured.items() if not load.fits(least)}
    # Who leaves goes on until someone who arrives can take over.
    may_leave = any(each.takes for each in members.values()) or not any(
        each.takes_nothing and not each.leaving for each in members.values()
    )
    return {
        each: member.owned
        if member.leaving and may_leave
        else frozenset(
            name
            for name in member.owned & (unwanted | large)
            if name in unwanted or not configured[name].fits(member.slots)
        )
        for each, member in members.items()
    }


def _previously_assigned(memory: AssignorMemory, rebalance: Rebalance) -> Mapping[str, str]:
    """What some member was given before this rebalance, and its URL, as far as this leader knows."""
    if memory.generation != rebalance.last_generation:
        # Another one led meanwhile, or the last answer never counted.
        return {}
    return memory.assigned


def _scheduled(memory: AssignorMemory, rebalance: Rebalance, lost: frozenset[str]) -> int | None:
    """Until when *lost* connectors wait for a member that is gone; ``None`` when they do not."""
    if not lost or rebalance.max_delay_ms == 0:
        return None
    is_gone = not memory.members <= rebalance.members.keys()
    if memory.scheduled_ms is None:
        # Where no one is gone, a member missed its answer.
        return rebalance.now_ms + rebalance.max_delay_ms if is_gone else None
    return memory.scheduled_ms if memory.scheduled_ms > rebalance.now_ms else None


class _Move(NamedTuple):
    origin: str
    target: str


class _Kind(NamedTuple):
    """What connectors have in common of which it does not matter which one is moved. *is_owned* are those that have to be revoked."""

    load: ConnectorLoad
    is_owned: bool


class _Loads:
    """What each member that takes connectors has, and what it could take. Its load is tasks by slots."""

    def __init__(
        self,
        configured: Mapping[str, ConnectorLoad],
        members: Mapping[str, Member],
        revoked: Mapping[str, frozenset[str]],
    ) -> None:
        self._configured = configured
        self._slots = {
            each: max(1, member.slots) for each, member in sorted(members.items()) if member.takes
        }
        # Loads are compared as whole numbers.
        common = lcm(*self._slots.values())
        self._share = {each: common // slots for each, slots in self._slots.items()}
        self._loads = dict.fromkeys(self._slots, 0)
        self._has = {each: defaultdict[_Kind, set[str]](set) for each in self._slots}
        for each in self._slots:
            self._keep(each, members[each].owned - revoked[each])

    def new(self, member: str) -> frozenset[str]:
        """What *member* has now that no one had before."""
        kinds = self._has.get(member, {}).items()
        return frozenset().union(*(names for kind, names in kinds if not kind.is_owned))

    def place(self, free: Iterable[str], planned: Mapping[str, str]) -> frozenset[str]:
        """Give each *free* connector to a member, the heaviest first; the answer is those that fit nowhere."""
        unplaced = set[str]()
        rest: list[str] = []
        for name in sorted(free):
            target = planned.get(name)
            if target in self._slots and self._fits(self._configured[name], target):
                self._give(name, target, is_owned=False)
            else:
                rest.append(name)
        heap = [(load, each) for each, load in self._loads.items()]
        heapq.heapify(heap)
        for name in sorted(rest, key=lambda name: (-self._configured[name].weight, name)):
            passed: list[tuple[int, str]] = []
            while heap and not self._fits(self._configured[name], heap[0][1]):
                passed.append(heapq.heappop(heap))
            if heap:
                _, target = heap[0]
                self._give(name, target, is_owned=False)
                heapq.heapreplace(heap, (self._loads[target], target))
            else:
                unplaced.add(name)
            for each in passed:
                heapq.heappush(heap, each)
        return frozenset(unplaced)

    def evened(self) -> dict[str, _Move]:
        """Move connectors from the member with the highest load to that with the lowest, as long as the higher of both loads falls.

        The answer is the moves of those that have an owner.
        """
        moves: dict[str, _Move] = {}
        while len(self._slots) > 1:
            high = max(self._slots, key=lambda each: (self._loads[each], each))
            low = min(self._slots, key=lambda each: (self._loads[each], each))
            kind = self._best(high, low)
            if kind is None:
                break
            name = min(self._has[high][kind])
            self._has[high][kind].remove(name)
            self._loads[high] -= kind.load.weight * self._share[high]
            self._give(name, low, is_owned=kind.is_owned)
            if kind.is_owned:
                origin = moves[name].origin if name in moves else high
                moves[name] = _Move(origin, low)
        return {name: move for name, move in moves.items() if move.origin != move.target}

    def _best(self, high: str, low: str) -> _Kind | None:
        """What to move from *high* to *low* so that the higher load of both is the lowest; ``None`` when nothing lowers it."""
        before = self._loads[high]
        best: tuple[int, bool, _Kind] | None = None
        for kind, names in self._has[high].items():
            weight = kind.load.weight
            after = max(
                before - weight * self._share[high], self._loads[low] + weight * self._share[low]
            )
            if names and after < before and self._fits(kind.load, low):
                found = (after, kind.is_owned, kind)
                best = found if best is None or found[:2] < best[:2] else best
        return best and best[2]

    def _fits(self, load: ConnectorLoad, member: str) -> bool:
        return load.fits(self._slots[member])

    def _keep(self, member: str, names: Iterable[str]) -> None:
        by_load = defaultdict[ConnectorLoad, set[str]](set)
        for name in names:
            by_load[self._configured[name]].add(name)
        for load, found in by_load.items():
            self._has[member][_Kind(load, is_owned=True)] = found
            self._loads[member] += load.weight * len(found) * self._share[member]

    def _give(self, name: str, member: str, *, is_owned: bool) -> None:
        load = self._configured[name]
        self._has[member][_Kind(load, is_owned)].add(name)
        self._loads[member] += load.weight * self._share[member]
