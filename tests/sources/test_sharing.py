"""Shares: every piece once, and none much heavier than another."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from headrace.connect import SourcePartition, Split
from headrace.sources.sharing import Piece, shared

WEIGHTS = st.lists(st.integers(0, 10**9), max_size=40)


def pieces(weights: list[int]) -> list[Piece]:
    """One piece for each weight."""
    return [
        Piece(split=Split(partition=SourcePartition(filename=str(index))), weight=weight)
        for index, weight in enumerate(weights)
    ]


@given(weights=WEIGHTS, slots=st.integers(1, 8))
def test_every_piece_is_in_one_share(weights: list[int], slots: int) -> None:
    """Nothing is lost or read by two, no share is empty, and each keeps the order."""
    shares = shared(pieces(weights), slots)

    numbers = [[int(str(split.partition["filename"])) for split in share] for share in shares]
    assert list(range(len(weights))) == sorted(number for share in numbers for number in share)
    assert all(share == sorted(share) for share in numbers)
    assert min(slots, len(weights)) == len(shares)
    assert all(shares)


@given(weights=WEIGHTS.filter(bool), slots=st.integers(1, 8))
def test_shares_are_balanced(weights: list[int], slots: int) -> None:
    """No share exceeds another one that could have taken its lightest piece."""
    shares = shared(pieces(weights), slots)

    heights = [
        [max(1, weights[int(str(split.partition["filename"]))]) for split in share]
        for share in shares
    ]
    lightest = min(map(sum, heights))
    assert all(sum(share) - min(share) <= lightest for share in heights)
