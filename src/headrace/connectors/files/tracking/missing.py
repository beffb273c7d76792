"""Since when files that are known have been missing from every listing."""

from __future__ import annotations

from array import array
from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

_Hashes = npt.NDArray[np.int64]
_NEVER = np.inf


class Missing:
    """Compares listings with what is known; kept for one run, in 16 bytes for each file that is missing.

    Of names only hashes are kept: two that have the same one count as one, so that one of them may be missing
    unnoticed. Used on one thread.
    """

    def __init__(self) -> None:
        self._hashes: _Hashes = np.empty(0, np.int64)
        self._since: npt.NDArray[np.float64] = np.empty(0, np.float64)
        self.has_more = False
        """Whether something is missing since the last comparison that was not so before it."""

    def shown(self, seen: array[int]) -> None:
        """A listing has shown *seen*, the hashes of paths: these are not missing any more."""
        if not len(self._hashes):
            return
        still = np.isin(self._hashes, _distinct(seen), assume_unique=True, invert=True)
        self._hashes, self._since = self._hashes[still], self._since[still]

    def compare(self, known: Iterable[str], seen: array[int], *, now: float) -> None:
        """Note what of *known* a complete listing has not shown at *now*, in seconds that only rise."""
        expected: _Hashes = np.unique(np.fromiter(map(hash, known), np.int64))
        gone: _Hashes = np.setdiff1d(expected, _distinct(seen), assume_unique=True)
        since = np.full(len(gone), now, np.float64)
        _, at, before = np.intersect1d(gone, self._hashes, assume_unique=True, return_indices=True)
        since[at] = self._since[before]
        self.has_more = len(gone) > len(at)
        self._hashes, self._since = gone, since

    def missed(self, known: Iterable[str], *, seconds: float, now: float) -> list[str]:
        """Those of *known* that have been missing for so many *seconds* at *now*."""
        due = set[int](self._hashes[now - self._since >= seconds].tolist())
        return [path for path in known if hash(path) in due] if due else []

    def recall(self, since: Iterable[tuple[str, float]]) -> None:
        """Take each path of *since* for missing since the time beside it, where that is earlier than is known."""
        hashes, times = array("q"), array("d")
        for path, at in since:
            hashes.append(hash(path))
            times.append(at)
        recalled, first = np.unique(np.array(hashes, np.int64), return_index=True)
        _, at, known = np.intersect1d(
            self._hashes, recalled, assume_unique=True, return_indices=True
        )
        earlier = np.minimum(self._since[at], np.array(times, np.float64)[first][known])
        # What is let be has no time any more.
        self._since[at] = np.where(np.isfinite(self._since[at]), earlier, _NEVER)

    def let_be(self, paths: Iterable[str]) -> None:
        """Do not name *paths* again for as long as they are missing."""
        hashes = np.fromiter(map(hash, paths), np.int64)
        self._since[np.isin(self._hashes, hashes)] = _NEVER


def _distinct(seen: array[int]) -> _Hashes:
    return np.unique(np.array(seen, np.int64))
