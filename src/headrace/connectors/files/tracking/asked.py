"""What a listing asks of all that is known: of what is listed, what was read of it."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping

from headrace.connectors.files.progress import MISSING, KnownFiles, Progress


class Asked(Mapping[str, Progress]):
    """What is *known*, for one listing, by one plan or several, which asks for each path that it lists.

    Behind the listing it tells what was begun, and not asked for, without another look at all that is
    known: mostly the listing has asked for all of that, in the order of names. Only paths that rise are
    surely not asked for twice; where they do not, nothing is taken for granted.
    """

    def __init__(self, known: KnownFiles) -> None:
        self.known = known
        self._hidden: Collection[str] = ()
        self._found = 0
        self._last = ""
        self._rises = True
        self._has_order = True
        self._goes_on = False
        self._cleaned = set[str]()
        self._not_done = set[str]()
        self.returned = set[str]()
        """The paths of which an entry says that they are missing, and which are listed."""

    def hide(self, paths: Collection[str]) -> None:
        """Say from now on that nothing is known of *paths*."""
        self._hidden = paths

    def cleaned(self, paths: Iterable[str]) -> None:
        """What was at *paths* has been deleted or moved here, so that they may be listed although nothing is there.

        Only a listing that goes on may have been told of them before, and where it has an order, of those behind its place.
        """
        if self._goes_on:
            passed = self._last if self._has_order else ""
            self._cleaned.update(path for path in paths if path > passed)

    def leaves_out(self, path: str) -> bool:
        """Whether *path*, which is listed now, is hidden, or was cleaned since the listing began."""
        if path in self._hidden:
            return True
        if path not in self._cleaned:
            return False
        # No name is listed twice.
        self._cleaned.remove(path)
        return True

    def __getitem__(self, path: str) -> Progress:
        if path in self._hidden:
            return Progress()
        progress = self.known[path]
        self._found += 1
        if path <= self._last:
            self._has_order = self._rises = False
        self._last = path
        if not progress.done:
            self._not_done.add(path)
        if progress.entry is not None and MISSING in progress.entry:
            self.returned.add(path)
        return progress

    def __contains__(self, path: object) -> bool:
        return path in self.known

    def __iter__(self) -> Iterator[str]:
        return iter(self.known)

    def __len__(self) -> int:
        return len(self.known)

    def go_on(self, known: KnownFiles) -> None:
        """Another plan goes on with the listing; by now so much is *known*."""
        self.known = known
        self._goes_on = True
        self.returned.clear()
        # What was found before may have been removed since, so that numbers say nothing.
        self._rises = False

    @property
    def found_all(self) -> bool:
        """Whether all that is known was asked for; ``False`` where it is hard to say."""
        return self._rises and self._found == self.known.at_most

    def unfinished(self) -> list[str]:
        """The paths that were not asked for and of which something is left to read, in order."""
        if self.found_all:
            return []
        left = (path for path, each in self.known.items() if not each.finished)
        return sorted(path for path in left if path not in self._not_done)
