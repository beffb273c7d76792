"""The seam between a listing and what is to be remembered of it."""

from __future__ import annotations

from typing import Protocol


class ListingObserver(Protocol):
    """Is shown one listing and says what it may pass over. Called by a selection, for paths or addresses."""

    @property
    def start_after(self) -> str:
        """Behind which path or address the listing may begin; empty for all."""
        ...

    def saw(self, path: str) -> None:
        """There is something at *path*, whether it is selected or not."""
        ...

    def missed(self, path: str) -> bool:
        """The file at *path* or, behind a path that ends with a slash, all that is below it could not be seen.

        Whether that concerns anybody: what was read, and is away now, does not.
        """
        ...

    def wants_time(self, path: str) -> bool:
        """Whether :meth:`passed` would like to know when the file was changed, although that costs a look."""
        ...

    def passed(self, path: str, modified_ms: int | None) -> str | None:
        """Why the selected file at *path*, which was changed then, counts as read without an entry.

        ``None`` where that is not so. Asked once for each.
        """
        ...


class Unobserved:
    """A :class:`ListingObserver` that lists everything and passes over nothing."""

    start_after = ""

    def saw(self, path: str) -> None:
        """See :class:`ListingObserver`."""

    def missed(self, path: str) -> bool:
        """See :class:`ListingObserver`."""
        return True

    def wants_time(self, path: str) -> bool:
        """See :class:`ListingObserver`."""
        return False

    def passed(self, path: str, modified_ms: int | None) -> str | None:
        """See :class:`ListingObserver`."""
        return None


UNOBSERVED = Unobserved()
