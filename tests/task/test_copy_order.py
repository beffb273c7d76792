"""Copies of offsets that arrive late, in any order: the worker's store never goes back to an older one."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count

from hypothesis import given
from hypothesis import strategies as st

from headrace.connect.errors import RetriableError
from headrace.connect.partition import SourcePartition
from headrace.connect.task import Offsets
from headrace.runtime.micro_batch import MicroBatch
from headrace.task.transactions import CopyingCommitStrategy
from runtime.test_micro_batch import micro_batch

PARTITIONS = [SourcePartition(file=each) for each in "ab"]
Removals = list[bool]


class Own:
    """The connector's own topic, which takes all."""

    update_must_succeed = True
    in_transactions = True

    def __init__(self) -> None:
        self.known: dict[SourcePartition, object] = {}

    def before_records(self, topic: str) -> None:
        """Nothing."""

    def settle(self) -> None:
        """Nothing."""

    def commit(self, offsets: Offsets) -> bool:
        """Take them."""
        self.known.update(offsets)
        return True

    def abort(self) -> bool:
        """Nothing."""
        return False


class Postponing:
    """Copies through a micro-batch into a store; those that *lates* chooses arrive after later ones."""

    def __init__(self, batch: MicroBatch, lates: Callable[[], int]) -> None:
        self._batch = batch
        self._lates = lates
        self._numbers = count(1)
        self._due: list[tuple[int, int, Offsets]] = []
        self.stored: dict[SourcePartition, object] = {}

    def first(self, offsets: Offsets) -> None:
        """Always in time: whoever waits in vain for a removal ends."""
        self._arrive(next(self._numbers), offsets)

    def later(self, offsets: Offsets) -> None:
        """In time, or so many requests late, of which the slot hears no answer."""
        number, late = next(self._numbers), self._lates()
        if late:
            self._due.append((number + late, number, dict(offsets)))
            raise RetriableError("no answer.")
        self._arrive(number, offsets)

    def finish(self) -> None:
        """All that is late arrives."""
        self._arrive_late(None)

    def _arrive(self, number: int, offsets: Offsets) -> None:
        self._arrive_late(number)
        self._take(number, offsets)

    def _arrive_late(self, now: int | None) -> None:
        for due in sorted(self._due, key=lambda each: each[0]):
            if now is None or due[0] < now:
                self._due.remove(due)
                self._take(*due[1:])

    def _take(self, number: int, offsets: Offsets) -> None:
        (token,) = self._batch.tokens()
        self._batch.while_valid(token, number, lambda: self.stored.update(offsets))


@given(
    commits=st.lists(
        st.dictionaries(st.sampled_from(PARTITIONS), st.booleans(), min_size=1), min_size=1
    ),
    lates=st.lists(st.integers(0, 4)),
)
def test_the_worker_s_store_never_has_an_offset_that_was_removed_or_replaced_there(
    commits: list[dict[SourcePartition, bool]], lates: list[int]
) -> None:
    """However late copies come: after one that came in time, all that was committed before it is there."""
    waits = list(lates)
    copies = Postponing(micro_batch(), lambda: waits.pop() if waits else 0)
    own = Own()
    slot = CopyingCommitStrategy(own, copies, connector="c")
    for at, commit in enumerate([*commits, dict.fromkeys(PARTITIONS, False)]):
        waits = waits if at < len(commits) else []
        slot.commit({each: None if gone else {"at": at} for each, gone in commit.items()})
        removed = {each for each, gone in commit.items() if gone}
        assert {None} >= {copies.stored[each] for each in removed}
    copies.finish()

    assert own.known == copies.stored
