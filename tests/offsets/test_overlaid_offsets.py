"""A connector's own offsets over those in the worker's store."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from headrace.connect.partition import SourceOffset, SourcePartition, of_names
from headrace.offsets.secondary import (
    OverlaidOffsets,
    missing_below,
)

partitions = st.builds(
    lambda name, value: SourcePartition({name: value}), st.sampled_from("ab"), st.integers(0, 3)
)
offsets = st.dictionaries(partitions, st.builds(lambda at: {"at": at}, st.integers(0, 2)))
Known = dict[SourcePartition, SourceOffset]


@given(offsets, offsets)
def test_the_own_offset_wins_for_each_source_partition(own: Known, below: Known) -> None:
    """As one mapping over another, however it is asked."""
    overlaid = OverlaidOffsets(own, below)

    expected = {**below, **own}
    assert expected == dict(overlaid.items())
    assert expected == {each: overlaid[each] for each in overlaid}
    assert len(expected) == len(overlaid)


@given(offsets, offsets)
def test_those_of_some_names_are_overlaid_alike(own: Known, below: Known) -> None:
    """Connectors ask for one kind of partition among millions."""
    overlaid = OverlaidOffsets(own, below)

    assert of_names({**below, **own}, ["a"]) == dict(of_names(overlaid, ["a"]).items())


@given(offsets, offsets)
def test_what_is_missing_below_makes_the_worker_s_say_the_same(own: Known, below: Known) -> None:
    """And it is no more than that: what is there already is not written again."""
    missing = missing_below(own, below)

    assert dict(OverlaidOffsets(own, below).items()) == {**below, **missing}
    assert all(below.get(each) != offset for each, offset in missing.items())
