"""Files that ``files.path`` names itself and that may not be there, because they are taken away when they are read."""

from __future__ import annotations

import os
from collections.abc import Collection, Container, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from headrace.connectors.files.local.file_seen import status_of
from headrace.connectors.files.progress import Progress

if TYPE_CHECKING:
    from headrace.connectors.files.config import FilesConfig
    from headrace.connectors.files.selecting.selection import EventListener

_COMES: Final = "There is no such file now. One that comes later is read."


@dataclass(frozen=True, slots=True, kw_only=True)
class _Expected:
    """What was there once, or is taken away whenever it is.

    *files* keeps the paths that are no folder's: to look through all that is known at each plan costs time.
    """

    known: Mapping[str, Progress]
    named: Collection[str]
    files: set[str]
    tell: EventListener

    def __contains__(self, path: object) -> bool:
        if path in self.known:
            return True
        if not isinstance(path, str) or path not in self.named:
            return False
        if status_of(path) is not None:
            self.files.discard(path)
            return False
        # A folder that is away, or the place for a file, is not what is taken away.
        if not os.path.isdir(os.path.dirname(path)) or self._is_folder(path):  # noqa: PTH112, PTH120
            return False
        self.tell(path, _COMES)
        return True

    def _is_folder(self, path: str) -> bool:
        """Whether anything below *path* is known."""
        if path in self.files:
            return False
        below = f"{path}/"
        is_folder = any(each.startswith(below) for each in self.known)
        if not is_folder:
            self.files.add(path)
        return is_folder


class Awaited:
    """Which paths of *config* may be missing. A name that ends with a slash is that of a folder."""

    def __init__(self, config: FilesConfig, tell: EventListener) -> None:
        files = (
            (path for path in config.path if not path.endswith("/")) if config.takes_away else ()
        )
        self._named = frozenset(map(os.path.abspath, files))
        self._tell = tell
        self._files = set[str]()

    def beside(self, known: Mapping[str, Progress]) -> Container[str]:
        """The paths that may be missing: those that are *known*, and files that are taken away."""
        return _Expected(known=known, named=self._named, files=self._files, tell=self._tell)
