"""Who runs what when all work stops before it is divided, as with ``connect.protocol=eager``. Pure."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

_Piece = TypeVar("_Piece")


def dealt(
    pieces: Iterable[_Piece], members: Iterable[str], fits: Callable[[_Piece, str], bool]
) -> tuple[dict[str, list[_Piece]], Sequence[_Piece]]:
    """Deal *pieces* in their order to the *members* in that of their ids, one after the other, as Kafka Connect does.

    A member that a piece does not fit is passed over. The second part of the answer is what fits none.
    """
    turn = deque(sorted(members))
    given = {each: list[_Piece]() for each in turn}
    unplaced: list[_Piece] = []
    for piece in pieces:
        target = next((each for each in turn if fits(piece, each)), None)
        if target is None:
            unplaced.append(piece)
        else:
            given[target].append(piece)
            turn.rotate(-1 - turn.index(target))
    return given, unplaced
