"""The keys that were finished last: where the next listing begins."""

from __future__ import annotations

import bisect
from collections.abc import Iterable
from typing import Generic

from headrace.sources.keys import K


class Lookback(Generic[K]):
    """The *size* greatest keys that were finished; until there are so many, listings begin at *first*.

    With the size 0 they always do; ``None`` is the beginning.

    Only decides how far back a listing looks for objects that came late. That nothing is read twice does
    not depend on it.
    """

    def __init__(self, size: int, keys: Iterable[K] = (), *, first: K | None = None) -> None:
        self._size = size
        self._first = first
        self._keys: list[K] = []
        for key in keys:
            self.add(key)

    def add(self, key: K) -> None:
        """*key* is finished."""
        place = bisect.bisect_left(self._keys, key)
        if place < len(self._keys) and not key < self._keys[place]:
            return
        self._keys.insert(place, key)
        del self._keys[: len(self._keys) - self._size]

    @property
    def start(self) -> K | None:
        """The key to list from: the least one that is kept, and the first one until there are *size* of them.

        Before that, an object that came late may sort before all that are known.
        """
        return self._keys[0] if self._size and len(self._keys) == self._size else self._first
