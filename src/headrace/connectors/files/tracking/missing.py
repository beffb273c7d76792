"""For how long files that are known have been missing from every listing."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

_Hashes = npt.NDArray[np.int64]
_NEVER: Final = np.inf
# Columns: since when in this run, what notes and the clock say of earlier ones, and whether a note says it already.
_SINCE, _EARLIER, _BETWEEN, _NOTED = range(4)


@dataclass(frozen=True, slots=True, kw_only=True)
class Recalled:
    """What is known of *path* from earlier runs, in seconds.

    It was missing for *earlier* when its note was written, and since then *between* have passed by a clock that
    may be wrong.
    """

    path: str
    earlier: float
    between: float


class Missing:
    """Compares listings with what is known; kept for one run, in 40 bytes for each file that is missing.

    Of names only hashes are kept: two that have the same one count as one, so that one of them may be missing
    unnoticed. Used on one thread.
    """

    def __init__(self) -> None:
        # They rise.
        self._hashes: _Hashes = np.empty(0, np.int64)
        self._times: npt.NDArray[np.float64] = np.empty((0, 4), np.float64)

    def shown(self, seen: array[int]) -> None:
        """A listing has shown *seen*, the hashes of paths: these are not missing any more."""
        if not len(self._hashes):
            return
        still = np.isin(self._hashes, _distinct(seen), assume_unique=True, invert=True)
        self._hashes, self._times = self._hashes[still], self._times[still]

    def compare(self, known: Iterable[str], seen: array[int], *, now: float) -> None:
        """Note what of *known* a complete listing has not shown at *now*, in seconds that only rise."""
        expected: _Hashes = np.unique(_hashes_of(known))
        gone: _Hashes = np.setdiff1d(expected, _distinct(seen), assume_unique=True)
        times = np.zeros((len(gone), 4), np.float64)
        times[:, _SINCE] = now
        _, at, before = np.intersect1d(gone, self._hashes, assume_unique=True, return_indices=True)
        times[at] = self._times[before]
        self._hashes, self._times = gone, times

    def missed(self, known: Iterable[str], *, seconds: float, now: float) -> list[str]:
        """Those of *known* that have been missing for so many *seconds* at *now*.

        Half of that at most may be what passed between two runs, and half what was before them, so that no
        single step of a clock is enough.
        """
        recalled = np.minimum(self._times[:, _EARLIER : _BETWEEN + 1], seconds / 2).sum(axis=1)
        return self._named(known, now - self._times[:, _SINCE] + recalled >= seconds)

    def unnoted(self, known: Iterable[str], *, seconds: float, now: float) -> list[str]:
        """Those of *known* that this run has missed for so many *seconds*, but for those that were :meth:`noted`."""
        due = now - self._times[:, _SINCE] >= seconds
        return self._named(known, due & (self._times[:, _NOTED] == 0))

    def noted(self, paths: Iterable[str]) -> None:
        """Of *paths* nothing is to be written any more in this run."""
        self._times[np.isin(self._hashes, _hashes_of(paths)), _NOTED] = 1

    def recall(self, recalled: Iterable[Recalled]) -> None:
        """Count what earlier runs have seen; of what is not missing nothing is taken."""
        hashes, times = array("q"), array("d")
        for each in recalled:
            hashes.append(hash(each.path))
            times.extend((each.earlier, each.between))
        distinct, first = np.unique(np.array(hashes, np.int64), return_index=True)
        _, at, found = np.intersect1d(
            self._hashes, distinct, assume_unique=True, return_indices=True
        )
        pairs = np.array(times, np.float64).reshape(-1, 2)[first][found]
        self._times[at, _EARLIER : _BETWEEN + 1] = pairs

    def observed(self, paths: Sequence[str], *, now: float) -> Iterator[tuple[str, float]]:
        """Each of *paths*, which are missing, with the seconds for which runs have missed it at *now*."""
        times = self._times[np.searchsorted(self._hashes, _hashes_of(paths))]
        seconds = now - times[:, _SINCE] + times[:, _EARLIER] + times[:, _BETWEEN]
        return zip(paths, seconds.tolist(), strict=True)

    def let_be(self, paths: Iterable[str]) -> None:
        """Do not name *paths* again for as long as they are missing."""
        self._times[np.isin(self._hashes, _hashes_of(paths)), _SINCE] = _NEVER

    def _named(self, known: Iterable[str], chosen: npt.NDArray[np.bool_]) -> list[str]:
        named = set[int](self._hashes[chosen].tolist())
        return [path for path in known if hash(path) in named] if named else []


def _distinct(seen: array[int]) -> _Hashes:
    return np.unique(np.array(seen, np.int64))


def _hashes_of(paths: Iterable[str]) -> _Hashes:
    return np.fromiter(map(hash, paths), np.int64)
