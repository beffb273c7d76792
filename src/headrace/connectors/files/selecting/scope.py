"""Which of the files that ``files.path`` selects are read at all, by their names and times. Pure."""

from __future__ import annotations

from collections.abc import Callable

from headrace.connect.errors import TaskFailedError
from headrace.connectors.files.config import FilesConfig
from headrace.connectors.files.naming.destinations import Destinations

LeftOut = Callable[[str, str], None]
"""Is given the path or address of something that is not read, and why, as a sentence."""

Failed = Callable[[str, TaskFailedError], None]
"""Is given the path of a file that fails the connector; may raise, as :func:`fail` does."""


def unheard(_path: str, _reason: str) -> None:
    """The default :data:`LeftOut`: what is not selected concerns no one."""


def fail(_path: str, error: TaskFailedError) -> None:
    """The default :data:`Failed`."""
    raise error


class Scope:
    """Where to begin, and the form of names. Asked of each file at each plan."""

    def __init__(self, config: FilesConfig) -> None:
        self._destinations = Destinations(config)
        self.start_after = config.start_after or ""
        """The path or key behind which names must sort; empty for all."""
        self._since_ms = config.modified_since_ms
        self._marker = config.marker
        self._form_key = "files.name.template" if config.name_regex is None else "files.name.regex"

    def against_name(self, path: str) -> str | None:
        """Why the file at *path*, or at this address, is not read, by its name; ``None`` where it is."""
        if self.start_after and self._destinations.name_of(path) <= self.start_after:
            return "Its name does not sort behind files.start.after."
        if not self._destinations.is_named_so(path):
            return f"Its name is not of the form that {self._form_key} wants."
        if self._marker is not None and self._marker.is_one(path):
            return "It is a marker by its name (files.complete.marker)."
        return None

    def against_time(self, modified_ms: float) -> str | None:
        """Why a file that was changed then, in milliseconds since 1970, is not read; ``None`` where it is."""
        if self._since_ms is not None and modified_ms < self._since_ms:
            return "It was changed before files.modified.since."
        return None
