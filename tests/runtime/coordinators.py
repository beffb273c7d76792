"""Transaction coordinators in memory: who has which transactional id, as a broker would answer (KIP-360)."""

from __future__ import annotations

from collections.abc import Callable, Collection

from headrace.connect.errors import FencedError
from headrace.kafka.deadline import Deadline
from headrace.kafka.producer import Waiting
from headrace.kafka.wire.transaction_state import ProducerIdentity

OnFence = Callable[[Collection[str], Waiting], None]


class MemoryCoordinator:
    """One cluster's, for every driver in a test; *on_fence* sees each fencing, and may raise or wait."""

    def __init__(self, on_fence: OnFence = lambda _ids, _waiting: None) -> None:
        self.on_fence = on_fence
        self.identities: dict[str, ProducerIdentity] = {}
        self.can_list = True
        self.forgets = False
        self.asked: list[str] = []

    def take(
        self, transactional_id: str, deadline: Deadline, *, waiting: Waiting | None = None
    ) -> ProducerIdentity:
        """Give the id to the caller."""
        self.asked.append(f"take {transactional_id}")
        return self._next(transactional_id)

    def prove(
        self, transactional_id: str, current: ProducerIdentity, deadline: Deadline
    ) -> ProducerIdentity:
        """Give the next epoch to the owner, and to no one else."""
        self.asked.append(f"prove {transactional_id}")
        if self.identities.get(transactional_id) != current:
            raise FencedError(f"{transactional_id} has a newer producer.")
        if self.forgets:
            return ProducerIdentity(producer_id=2, epoch=0)
        return self._next(transactional_id)

    def fence(
        self,
        transactional_ids: Collection[str],
        deadline: Deadline,
        *,
        waiting: Waiting | None = None,
    ) -> dict[str, ProducerIdentity]:
        """Fence them all."""
        self.asked.append(f"fence {' '.join(transactional_ids)}")
        self.on_fence(transactional_ids, waiting or (lambda _: None))
        return {each: self._next(each) for each in transactional_ids}

    def transactional_ids(
        self, deadline: Deadline, *, waiting: Waiting | None = None
    ) -> frozenset[str] | None:
        """All that anyone has had."""
        return frozenset(self.identities) if self.can_list else None

    def close(self) -> None:
        """Nothing to close."""

    def _next(self, transactional_id: str) -> ProducerIdentity:
        before = self.identities.get(transactional_id)
        epoch = 0 if before is None else before.epoch + 1
        self.identities[transactional_id] = ProducerIdentity(producer_id=1, epoch=epoch)
        return self.identities[transactional_id]
