"""Which new files still wait for their marker."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import Final

from headrace.connectors.files.selecting.marker import Marker
from headrace.connectors.files.selecting.selection import EventListener
from headrace.stores.store import StoredObject

_WAITS: Final = "waits for its marker {marker} (files.complete.marker)."
NEAR: Final = 32
"""How many keys before and behind the one that a listing is at are remembered."""


class Markers:
    """Asks *exists*, which is given a path or key, once per plan for each folder or file. Used on one thread.

    Without a *marker* nothing waits.
    """

    def __init__(self, marker: Marker | None, exists: Callable[[str], bool]) -> None:
        self._marker = marker
        self._exists = exists
        self._folders = dict[str, bool]()

    def begin(self) -> None:
        """A plan begins, or goes on: what was not there before may be there now."""
        self._folders.clear()

    def awaited_by(self, path: str) -> str | None:
        """Where the marker will be that the new file at *path*, or with this key, waits for, if it does.

        Raises what *exists* does.
        """
        if self._marker is None:
            return None
        wanted = self._marker.of(path)
        return None if self._is_there(wanted) else wanted

    def tell(self, path: str, marker: str, tell: EventListener) -> None:
        """Say that the file at *path* waits for *marker*; where that speaks of a folder, once for all of it."""
        name = marker.rpartition("/")[2]
        if self._marker is not None and self._marker.per_folder:
            tell(f"{path.rpartition('/')[0]}/", f"What is new here {_WAITS.format(marker=name)}")
        else:
            tell(path, f"It {_WAITS.format(marker=name)}")

    def _is_there(self, wanted: str) -> bool:
        assert self._marker is not None
        if not self._marker.per_folder:
            return self._exists(wanted)
        if wanted not in self._folders:
            self._folders[wanted] = self._exists(wanted)
        return self._folders[wanted]


class Nearby:
    """The keys around the one that a listing is at: whoever wants to know of one of them need not ask the store.

    A marker mostly lies beside its object. One that is not here may be anywhere.
    """

    def __init__(self) -> None:
        self._keys = dict[str, None]()

    def through(self, objects: Iterable[StoredObject]) -> Iterator[StoredObject]:
        """*objects*, each a little later than it is listed."""
        self._keys.clear()
        held = deque[StoredObject]()
        for each in objects:
            held.append(each)
            self._keys[each.key] = None
            if len(self._keys) > 2 * NEAR:
                del self._keys[next(iter(self._keys))]
            if len(held) > NEAR:
                yield held.popleft()
        yield from held

    def forget(self) -> None:
        """What was listed so far need not be there any more."""
        self._keys.clear()

    def __contains__(self, key: str) -> bool:
        return key in self._keys
