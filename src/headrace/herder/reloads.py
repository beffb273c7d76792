"""``config.action.reload``: connectors are restarted when files that their placeholders refer to have changed."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable, Mapping
from enum import Enum, auto
from pathlib import Path
from typing import Final

from headrace.config.providers import Resolution
from headrace.herder.errors import RequestError
from headrace.herder.protocol import Config
from headrace.observe.log_format import in_log_context

_log = logging.getLogger(__name__)

LOOK_SECONDS: Final = 5.0
"""How often files are checked: soon enough for an operator who waits, at next to no cost."""

_ACTION: Final = "config.action.reload"
_HINT: Final = f"({_ACTION}=none)"
Stamp = tuple[int, int, int] | None
"""When a file was modified, its inode, and its size; ``None`` for a missing file."""


class PlaceholderChanges(Enum):
    """How a configuration's values have changed since its connector was started."""

    NONE = auto()
    UNREADABLE = auto()
    """Not all of its placeholders can be resolved at the moment: a file may be in the middle of a rewrite."""
    LEFT_ALONE = auto()
    """They have changed, and the configuration says not to restart."""
    RESTART = auto()


def placeholder_changes(began: Resolution, now: Resolution) -> PlaceholderChanges:
    """What to do about a connector that *began* with one resolution and would *now* have another. Pure."""
    if now.problems:
        return PlaceholderChanges.UNREADABLE
    if now.resolved == began.resolved:
        return PlaceholderChanges.NONE
    action = (now.resolved.get(_ACTION) or "restart").strip()
    return PlaceholderChanges.LEFT_ALONE if action == "none" else PlaceholderChanges.RESTART


class Reloads:
    """Checks every few seconds, on a thread of its own, whether files that placeholders refer to have changed.

    *begun* returns the connectors that are to run, with the values that each was last started with; *resolved*
    resolves placeholders now, and *restart* restarts a connector.
    """

    def __init__(
        self,
        begun: Callable[[], Mapping[str, Resolution]],
        resolved: Callable[[Config], Resolution],
        restart: Callable[[str], object],
        *,
        seconds: float = LOOK_SECONDS,
    ) -> None:
        self._begun = begun
        self._resolved = resolved
        self._restart = restart
        self._seconds = seconds
        # Unchanged files are not read again.
        self._seen: dict[str, tuple[Resolution, Mapping[Path, Stamp]]] = {}
        self._closing = threading.Event()
        self._thread = threading.Thread(
            target=in_log_context(self._run), name="headrace-reloads", daemon=True
        )

    def start(self) -> None:
        """Start checking."""
        self._thread.start()

    def close(self) -> None:
        """Stop checking; returns at once."""
        self._closing.set()

    def look(self) -> None:
        """Check once. Called only by the thread once that runs."""
        begun = self._begun()
        self._seen = {name: seen for name, seen in self._seen.items() if name in begun}
        for name, began in begun.items():
            stamps = stamps_of(began.files)
            before, known = self._seen.get(name, (None, None))
            if before is not began or known != stamps:
                self._act(name, placeholder_changes(began, self._resolved(began.given)))
                # Taken before the files were read: a change meanwhile is seen the next time.
                self._seen[name] = (began, stamps)

    def _act(self, name: str, found: PlaceholderChanges) -> None:
        if found is PlaceholderChanges.RESTART:
            _log.info("A file that connector %s takes values from has changed: restarting it", name)
            self._restart(name)
        elif found is PlaceholderChanges.LEFT_ALONE:
            _log.info(
                "A file that connector %s takes values from has changed; it keeps the old ones until it is "
                "restarted %s",
                name,
                _HINT,
            )
        elif found is PlaceholderChanges.UNREADABLE:
            _log.warning(
                "Connector %s takes values from files that cannot be read at the moment; it is restarted once "
                "they can be read and have changed",
                name,
            )

    def _run(self) -> None:
        while not self._closing.wait(self._seconds):
            try:
                self.look()
            except RequestError as error:
                # It was deleted meanwhile, or the worker is ending.
                _log.debug("Not all files of placeholders were checked: %s", error)
            except Exception:  # noqa: BLE001 (no caller waits for it; the next check may succeed)
                _log.exception("The files of placeholders could not be checked")


def stamps_of(files: Iterable[Path]) -> dict[Path, Stamp]:
    """Stamps by which a change of *files* is noticed; follows links."""
    return {each: _stamp(each) for each in files}


def _stamp(file: Path) -> Stamp:
    try:
        found = file.stat()
    except (OSError, ValueError):
        return None
    return found.st_mtime_ns, found.st_ino, found.st_size
