"""Pieces of work, shared out over slots by size. Pure."""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import dataclass

from headrace.connect.task import Split


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """A split, and how much work it is: bytes, or whatever the pieces of one plan have in common."""

    split: Split
    weight: int


def shared(pieces: Sequence[Piece], slots: int) -> list[list[Split]]:
    """At most *slots* non-empty shares of nearly equal weight, each in the order of *pieces*.

    The heaviest piece goes first, always to the lightest share; the same pieces give the same shares.
    """
    weights = [(0, slot) for slot in range(min(slots, len(pieces)))]
    owner = [0] * len(pieces)
    for index in sorted(range(len(pieces)), key=lambda index: -pieces[index].weight):
        weight, slot = weights[0]
        heapq.heapreplace(weights, (weight + max(1, pieces[index].weight), slot))
        owner[index] = slot
    shares: list[list[Split]] = [[] for _ in weights]
    for index, piece in enumerate(pieces):
        shares[owner[index]].append(piece.split)
    return shares
