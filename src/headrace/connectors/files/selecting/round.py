"""What one plan takes of all there is to read. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import accumulate, takewhile
from typing import Final

from headrace.sources.sharing import Piece

MOST_OBJECTS: Final = 100_000
"""How many files one plan takes where no one says it: what is planned lies in memory, a kilobyte for each."""


@dataclass(slots=True, kw_only=True)
class Round:
    """At most *max_objects* files and *max_bytes* of them, 0 for no limit; but always one piece."""

    max_objects: int = 0
    max_bytes: int = 0
    pieces: list[Piece] = field(default_factory=list[Piece])
    total_bytes: int = 0
    objects: list[str] = field(default_factory=list[str])
    """The files of the pieces."""

    has_more: bool = False
    """Whether something was not taken: from then on nothing is."""

    def take(self, name: str, pieces: Sequence[Piece]) -> Sequence[Piece]:
        """Take the first of *pieces*, which are those of the file *name*, as many as there is room for."""
        if not pieces:
            return ()
        self.has_more |= bool(self.max_objects and len(self.objects) >= self.max_objects)
        taken = () if self.has_more else pieces[: self._room_for(pieces)]
        self.has_more |= len(taken) < len(pieces)
        self.objects += [name] if taken else []
        self.pieces += taken
        self.total_bytes += sum(each.weight for each in taken)
        return taken

    def _room_for(self, pieces: Sequence[Piece]) -> int:
        if not self.max_bytes:
            return len(pieces)
        sizes = accumulate((each.weight for each in pieces), initial=self.total_bytes)
        fitting = len(list(takewhile(lambda size: size <= self.max_bytes, sizes))) - 1
        return max(fitting, 0 if self.pieces else 1)
