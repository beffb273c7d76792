"""What earlier looks at files have shown, of those that are still there."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

_Found = TypeVar("_Found")


class PathCache(dict[str, _Found]):
    """By path, so that not every plan looks again. Lives as long as the connector; used on one thread."""

    def keep(self, shown: Sequence[str]) -> None:
        """Forget all that a listing has not *shown*, where that may be something."""
        # To compare a million names costs more than to keep a few too many: there are never more than files.
        if len(self) > len(shown):
            for path in self.keys() - shown:
                del self[path]
