"""Record batches that are passed on unopened: how they are cut, and what they count."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from doubles.copied_positions import encoded
from headrace.connect.encoded import EncodedBatches, EncodedHeader


@given(
    counts=st.lists(st.integers(1, 9), max_size=12),
    most_bytes=st.integers(1, 500),
    most_records=st.one_of(st.none(), st.integers(1, 30)),
    behind=st.integers(0, 5),
)
def test_pieces_are_the_whole(
    counts: list[int], most_bytes: int, most_records: int | None, behind: int
) -> None:
    """Each batch once, in order; each piece begins where the one before it ends, and the last one ends as the whole."""
    whole = encoded(*counts, first=40)
    whole = replace(
        whole,
        next_offset=whole.next_offset + behind,
        offset={"offset": whole.next_offset + behind - 1},
    )

    cut = list(whole.pieces(most_bytes=most_bytes, most_records=most_records))

    assert list(whole.headers) == [header for each in cut for header in each.headers]
    assert whole.next_offset == cut[-1].next_offset
    assert all(each.offset == {"offset": each.next_offset - 1} for each in cut)
    assert all(before.next_offset == after.start for before, after in pairwise(cut))
    assert whole.records == sum(each.records for each in cut)
    assert all(len(each) <= 1 or each.nbytes <= most_bytes for each in cut)


def test_records_before_the_start_do_not_count() -> None:
    """A fetch begins with the batch that holds the offset."""
    assert 7 == encoded(10, 5, start=8, first=0).records


def test_what_the_headers_do_not_say_is_unknown() -> None:
    """One batch that does not say it is enough; so is one with gaps that begins before the start."""
    assert -1 == encoded(1, 2, known=False).records
    assert -1 == EncodedHeader(0, 9, 5).count_from(3)
    assert 5 == EncodedHeader(0, 9, 5).count_from(0)
    assert 0 == EncodedHeader(0, 9, 5).count_from(10)


def test_a_piece_may_have_other_entries_in_its_offset() -> None:
    """Only the one that moves is another one."""
    whole = replace(encoded(3, 3), offset={"offset": 5, "leaderEpoch": 7})

    assert {"offset": 2, "leaderEpoch": 7} == whole.slice(0, 1).offset


def test_without_batches_only_the_offset_moves() -> None:
    """As behind an aborted transaction."""
    nothing = encoded(first=3)

    assert [nothing] == list(nothing.pieces(most_bytes=1))
    assert 0 == nothing.records


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"headers": ()}, "2 batches but 0 headers"),
        ({"offset": {"offset": "5"}}, "no integer 'offset'"),
        ({"moving": "position"}, "no integer 'position'"),
        ({"next_offset": 5}, "end at offset 6, but name 5"),
        ({"headers": [EncodedHeader(0, 3, 4), EncodedHeader(3, 5, 3)]}, "begins at offset 3"),
    ],
)
def test_parts_that_do_not_fit_together_are_refused(
    changes: dict[str, object], sentence: str
) -> None:
    """Where the task makes them, not where records are missing."""
    whole = encoded(3, 3)
    parts = {name: getattr(whole, name) for name in EncodedBatches.__dataclass_fields__}

    with pytest.raises((TypeError, ValueError), match=sentence):
        EncodedBatches(**{**parts, **changes})
