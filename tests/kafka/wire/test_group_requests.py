"""Requests about groups, and what is made of their answers."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from headrace.connect.group_offsets import GroupEntry
from headrace.kafka.wire.group_requests import portions

ENTRIES = st.lists(
    st.builds(
        GroupEntry,
        st.text("abc", min_size=1, max_size=200),
        st.integers(0, 9),
        st.integers(0, 99),
        st.text("xyä", max_size=4_000),
    ),
    max_size=300,
)


@given(ENTRIES)
def test_portions_are_all_entries_in_order(entries: list[GroupEntry]) -> None:
    """And none is as large as what the broker writes at once."""
    cut = list(portions(entries))

    assert entries == [each for portion in cut for each in portion]
    assert all(sum(len(each.metadata.encode()) for each in portion) < 500_000 for portion in cut)
