"""Which worker of a mixed group has which connector and which task, each by itself, as Kafka Connect's leaders divide them (KIP-415). Pure.

Used where workers of Kafka Connect are members, which expect no other way. The rules are those of ``IncrementalCooperativeAssignor``, with
KIP-995's leaving, and with a follow-up at once where something was revoked.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, TypeAlias

from headrace.herder.group_protocol import ITSELF

_FOLLOW_UP_MS: Final = 1
_BACKOFF: Final = 40

Piece: TypeAlias = tuple[str, int]
"""A connector's name with the number of one of its tasks, or -1 for the connector itself."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PieceMemory:
    """What the leader remembers of the rebalance before; lost when the leader changes.

    *previous* are the pieces that some member had then, or that waited, *revoked* those that were taken away. *candidates* have joined
    with nothing during the *delay_ms* that ends at *scheduled_ms*, 0 for none. *rounds* counts rebalances in a row that would have revoked.
    """

    generation: int = -1
    previous: frozenset[Piece] = frozenset()
    revoked: frozenset[Piece] = frozenset()
    members: frozenset[str] = frozenset()
    scheduled_ms: int = 0
    delay_ms: int = 0
    candidates: Sequence[str] = ()
    has_revoked: bool = False
    rounds: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class PieceRebalance:
    """What the leader knows: see :class:`~headrace.herder.assignor.Rebalance`. *takers* are the members that may be given something."""

    generation: int
    last_generation: int
    now_ms: int
    configured: frozenset[Piece]
    reports: Mapping[str, frozenset[Piece]]
    leaving: frozenset[str]
    takers: frozenset[str]
    max_delay_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PieceAnswer:
    """What is new for each member, and what it gives up; everyone joins again after *delay_ms*, if that is not 0."""

    assigned: Mapping[str, frozenset[Piece]]
    revoked: Mapping[str, frozenset[Piece]]
    delay_ms: int


def assign_pieces(
    memory: PieceMemory, rebalance: PieceRebalance
) -> tuple[PieceMemory, PieceAnswer]:
    """Divide the pieces; none is given to a member while another has it."""
    division = _Division.begun(memory, rebalance)
    memory = division.treat_lost(memory)
    memory = division.balance(memory)
    division.hand_out()
    gone = frozenset[Piece]().union(*division.revoked.values())
    kept = frozenset[Piece]().union(*division.have.values()) - gone
    remembered = replace(
        memory,
        generation=rebalance.generation,
        previous=kept | division.lost,
        revoked=gone,
        members=frozenset(rebalance.reports),
    )
    answer = PieceAnswer(
        assigned={
            each: frozenset(have) - rebalance.reports[each] for each, have in division.have.items()
        },
        revoked={each: frozenset(pieces) for each, pieces in division.revoked.items()},
        delay_ms=min(memory.delay_ms or _FOLLOW_UP_MS, _FOLLOW_UP_MS) if gone else memory.delay_ms,
    )
    return remembered, answer


@dataclass(slots=True, kw_only=True)
class _Division:
    """The work of one rebalance: what each member will *have*, what is *revoked* from it, and what is *free* to be handed out."""

    rebalance: PieceRebalance
    targets: Sequence[str]
    lost: frozenset[Piece]
    free: set[Piece]
    have: dict[str, set[Piece]]
    revoked: dict[str, set[Piece]] = field(default_factory=dict[str, set[Piece]])

    @classmethod
    def begun(cls, memory: PieceMemory, rebalance: PieceRebalance) -> _Division:
        """What follows from what the members report alone."""
        reports, configured = rebalance.reports, rebalance.configured
        owners = Counter(piece for pieces in reports.values() for piece in pieces)
        active = frozenset(owners)
        # Another one has led meanwhile, or the last answer never counted.
        is_known = memory.generation == rebalance.last_generation
        previous = memory.previous if is_known else frozenset[Piece]()
        if memory.revoked & active:
            previous = active
        unwanted = {piece for piece, count in owners.items() if count > 1} | (active - configured)
        revoked = {
            each: set(pieces if each in rebalance.leaving else pieces & unwanted)
            for each, pieces in reports.items()
        }
        return cls(
            rebalance=rebalance,
            targets=sorted(rebalance.takers),
            lost=(previous - active) & configured,
            free=set(configured - previous - active),
            have={each: set(pieces) - revoked[each] for each, pieces in reports.items()},
            revoked=revoked,
        )

    def treat_lost(self, memory: PieceMemory) -> PieceMemory:
        """Have what members had that are gone wait for ``scheduled.rebalance.max.delay.ms``, or free it."""
        now, most = self.rebalance.now_ms, self.rebalance.max_delay_ms
        at = memory.scheduled_ms
        if not self.lost and (not memory.has_revoked or at <= 0):
            return replace(memory, candidates=(), scheduled_ms=0, delay_ms=0)
        # Where no one is gone, someone has missed its answer.
        if (at <= 0 and memory.members <= self.rebalance.reports.keys()) or most == 0:
            self.free |= self.lost
            return memory
        if 0 < at <= now:
            self._give_back(memory.candidates)
            return replace(memory, candidates=(), scheduled_ms=0, delay_ms=0, has_revoked=False)
        idle = [
            each for each in self.targets if not self.have[each] and each not in memory.candidates
        ]
        delay = min(at - now, most) if at > 0 else most
        return replace(
            memory,
            candidates=(*memory.candidates, *idle),
            delay_ms=delay,
            scheduled_ms=now + delay,
        )

    def _give_back(self, candidates: Sequence[str]) -> None:
        """Give what was lost to those that have come meanwhile, one of which may be who had it."""
        present = [each for each in candidates if each in self.targets]
        if not present:
            self.free |= self.lost
            return
        for pieces in _by_kind(self.lost):
            for number, piece in enumerate(pieces):
                self.have[present[number % len(present)]].add(piece)

    def balance(self, memory: PieceMemory) -> PieceMemory:
        """Take from those that have more than their share what the next rebalance gives to others."""
        if memory.delay_ms > 0:
            # While something waits, nothing moves.
            return replace(memory, has_revoked=False)
        excess = self._excess()
        if not excess:
            return replace(memory, has_revoked=False, rounds=0) if memory.has_revoked else memory
        if memory.has_revoked:
            rounds, most = memory.rounds + 1, self.rebalance.max_delay_ms
            # A limit on the exponent, too: the number would grow without end.
            delay = min(_BACKOFF ** min(rounds, 10), most)
            memory = replace(memory, rounds=rounds, delay_ms=delay)
            if delay > 0:
                return replace(memory, scheduled_ms=self.rebalance.now_ms + delay)
        for member, pieces in excess.items():
            self.have[member] -= pieces
            owned = pieces & self.rebalance.reports[member]
            self.revoked[member] |= owned
            # What was given back above is not this member's yet.
            self.free |= pieces - owned
        return replace(memory, has_revoked=True)

    def _excess(self) -> dict[str, set[Piece]]:
        found: dict[str, set[Piece]] = {}
        for is_task in (False, True):
            loads = {each: _of_kind(self.have[each], is_task=is_task) for each in self.targets}
            total = len(_of_kind(self.rebalance.configured, is_task=is_task))
            if not total or not any(self.have.values()) or not loads:
                continue
            low, extra = divmod(total, len(loads))
            if Counter(map(len, loads.values())) == +Counter(
                {low: len(loads) - extra, low + 1: extra}
            ):
                continue
            for each, pieces in loads.items():
                may_keep = low
                if len(pieces) > low and extra > 0:
                    may_keep, extra = low + 1, extra - 1
                if len(pieces) > may_keep:
                    found.setdefault(each, set()).update(pieces[: len(pieces) - may_keep])
        return found

    def hand_out(self) -> None:
        """Give what is free to who has the least of its kind."""
        if not self.targets:
            return
        for is_task, pieces in enumerate(_by_kind(self.free)):
            counts = {
                each: len(_of_kind(self.have[each], is_task=bool(is_task))) for each in self.targets
            }
            for piece in pieces:
                target = min(self.targets, key=lambda each: (counts[each], each))
                self.have[target].add(piece)
                counts[target] += 1


def _by_kind(pieces: Collection[Piece]) -> tuple[Sequence[Piece], Sequence[Piece]]:
    return _of_kind(pieces, is_task=False), _of_kind(pieces, is_task=True)


def _of_kind(pieces: Iterable[Piece], *, is_task: bool) -> Sequence[Piece]:
    return sorted(piece for piece in pieces if (piece[1] != ITSELF) is is_task)
