"""Which offset syncs are written and kept, and what offsets they translate to."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from headrace.kafka.topic_partition import TopicPartition
from headrace.mirror.formats import OffsetSync
from headrace.mirror.offset_syncs import SLOTS, OffsetSyncStore, SyncedPartition, updated

PLACE = TopicPartition("t", 0)
STEPS = st.lists(st.one_of(st.integers(1, 5), st.integers(1, 2**20)), max_size=120)


def sync(upstream: int, downstream: int | None = None) -> OffsetSync:
    """A sync whose target offset is half of the source's, unless it is given."""
    return OffsetSync(*PLACE, upstream, upstream // 2 if downstream is None else downstream)


def store_of(*syncs: OffsetSync, is_precise: bool = True) -> OffsetSyncStore:
    """A store that has read *syncs* before its first translation."""
    store = OffsetSyncStore(is_precise=is_precise)
    for each in syncs:
        store.add(each)
    store.complete()
    return store


@given(STEPS)
def test_slots_are_spread_out_the_further_back_the_more(steps: list[int]):
    """However far the syncs are apart, the bounds hold for every two slots."""
    slots = (sync(0),) * SLOTS
    upstream = 0
    for step in steps:
        upstream += step
        slots = tuple(updated(slots, sync(upstream)))
        assert slots[0].upstream == upstream
    for i in range(SLOTS):
        for j in range(i + 1, SLOTS):
            if slots[i] is not slots[j]:
                assert slots[i].upstream <= slots[j].upstream + 2**j - 2**i
                assert slots[i].upstream >= slots[j].upstream + 2 ** max(i - 2, 0)


@given(STEPS, st.integers(0, 2**22))
def test_a_translated_offset_is_never_ahead(steps: list[int], upstream: int):
    """Every record was copied, so that the exact offset is known."""
    store = OffsetSyncStore(is_precise=True)
    newest = 0
    for step in [0, *steps]:
        newest += step
        store.add(OffsetSync(*PLACE, newest, newest + 7))
    store.complete()
    found = store.translated(PLACE, upstream)
    assert found is not None
    assert found <= upstream + 7
    if upstream <= newest:
        # Behind the newest sync, precision is within twice the distance to it.
        assert upstream + 7 - found <= 2 * max(newest - upstream, max(steps, default=0)) + 2


def test_nothing_is_translated_before_all_was_read():
    """A later sync could be the first one that may be used."""
    store = OffsetSyncStore(is_precise=True)
    store.add(sync(10))
    assert store.translated(PLACE, 10) is None
    store.complete()
    assert store.translated(PLACE, 10) == 5
    assert store.translated(TopicPartition("t", 1), 10) is None


def test_an_offset_is_translated_by_the_newest_sync_that_is_not_behind_it():
    """Exactly at the sync, and one behind it for all later offsets."""
    store = store_of(sync(10, 100), sync(20, 200))
    assert [None, 100, 101, 200, 201] == [
        store.translated(PLACE, upstream) for upstream in (9, 10, 19, 20, 1000)
    ]


def test_without_earlier_checkpoints_only_the_last_sync_counts():
    """With older ones an offset might be translated to less than it was before."""
    store = store_of(sync(10), sync(20), is_precise=False)
    assert (sync(20),) == store.kept(PLACE)
    assert store.translated(PLACE, 15) is None
    store.add(sync(30))
    assert (sync(30), sync(20)) == store.kept(PLACE)


def test_a_source_that_goes_back_forgets_everything():
    """The topic was made again, and its offsets mean other records."""
    store = store_of(sync(10), sync(20))
    store.add(sync(3))
    assert (sync(3),) == store.kept(PLACE)


def test_a_sync_is_written_for_the_first_record_and_behind_every_gap():
    """Where the distance between both sides changes."""
    syncs = SyncedPartition(PLACE, lag_max=100)
    assert sync(0, 5) == syncs.copied(0, 5, 10)
    assert syncs.copied(10, 15, 10) is None
    assert sync(21, 25) == syncs.copied(21, 25, 10)
    assert sync(31, 4) == syncs.copied(31, 4)


def test_a_long_run_has_a_sync_of_its_last_step_and_commits_write_the_rest():
    """Of syncs that are due at the same time the last one is enough."""
    syncs = SyncedPartition(PLACE, lag_max=9)
    assert sync(30, 30) == syncs.copied(0, 0, 36)
    assert sync(35, 35) == syncs.committed()
    assert syncs.committed() is None
    assert syncs.copied(36, 36) is None
    assert sync(36, 36) == syncs.committed()


@given(
    st.lists(st.tuples(st.integers(1, 40), st.integers(-30, 30), st.integers(0, 3))),
    st.integers(0, 12),
)
def test_runs_write_what_single_records_would(runs: list[tuple[int, int, int]], lag_max: int):
    """The last sync that is due, and the one that the next commit writes."""
    together, single = (SyncedPartition(PLACE, lag_max=lag_max) for _ in range(2))
    upstream, downstream = 0, 100
    for count, jump, gap in runs:
        upstream, downstream = upstream + gap, max(downstream + jump, 0)
        due = None
        for i in range(count):
            due = single.copied(upstream + i, downstream + i) or due
        assert due == together.copied(upstream, downstream, count)
        if jump % 2:
            assert single.committed() == together.committed()
        upstream, downstream = upstream + count, downstream + count
