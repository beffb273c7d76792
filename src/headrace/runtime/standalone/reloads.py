"""Restarts of connectors whose placeholders stand for something else by now, because a file has changed."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable, Mapping
from enum import Enum, auto
from pathlib import Path
from typing import Final

from headrace.runtime.herder.errors import RequestError
from headrace.runtime.herder.herder import Config
from headrace.runtime.providers.resolution import Resolution

_log = logging.getLogger(__name__)

LOOK_SECONDS: Final = 5.0
"""How often files are looked at: soon enough for a person who waits, and next to nothing in work."""

_ACTION: Final = "config.action.reload"
_HINT: Final = f"({_ACTION}=none)"
Stamp = tuple[int, int, int] | None
"""When a file was modified, which one it is, and its size; ``None`` for one that is not there."""


class News(Enum):
    """What has become of a configuration since its connector was started."""

    NONE = auto()
    UNREADABLE = auto()
    """Not all of its placeholders can be resolved at the moment: a file may just be written anew."""
    LEFT_ALONE = auto()
    """It has changed, and says itself that nothing is to be done."""
    RESTART = auto()


def news(began: Resolution, now: Resolution) -> News:
    """What there is to be done about a connector that *began* with the one and would have the other. Pure."""
    if now.problems:
        return News.UNREADABLE
    if now.resolved == began.resolved:
        return News.NONE
    action = (now.resolved.get(_ACTION) or "restart").strip()
    return News.LEFT_ALONE if action == "none" else News.RESTART


class Reloads:
    """Looks every few seconds, on a thread of its own, whether files behind placeholders have changed.

    *begun* tells the connectors that want to run, with what each was last started with; *resolved* resolves
    placeholders as they are now, and *restart* restarts one.
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
        # Files that are as they were are not read again.
        self._seen: dict[str, tuple[Resolution, Mapping[Path, Stamp]]] = {}
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._run, name="headrace-reloads", daemon=True)

    def start(self) -> None:
        """Look from now on."""
        self._thread.start()

    def close(self) -> None:
        """Look no more; returns at once."""
        self._closing.set()

    def look(self) -> None:
        """Look once. Called by the thread, and by nobody else once that runs."""
        begun = self._begun()
        self._seen = {name: seen for name, seen in self._seen.items() if name in begun}
        for name, began in begun.items():
            stamps = stamps_of(began.files)
            before, known = self._seen.get(name, (None, None))
            if before is not began or known != stamps:
                self._act(name, news(began, self._resolved(began.given)))
                # Taken before the files were read: what has changed meanwhile is seen the next time.
                self._seen[name] = (began, stamps)

    def _act(self, name: str, found: News) -> None:
        if found is News.RESTART:
            _log.info("A file that connector %s takes values from has changed: restarting it", name)
            self._restart(name)
        elif found is News.LEFT_ALONE:
            _log.info(
                "A file that connector %s takes values from has changed; it goes on with the old ones "
                "until it is restarted %s",
                name,
                _HINT,
            )
        elif found is News.UNREADABLE:
            _log.warning(
                "Connector %s takes values from files that cannot be read now; it is restarted when they "
                "can, and have changed",
                name,
            )

    def _run(self) -> None:
        while not self._closing.wait(self._seconds):
            try:
                self.look()
            except RequestError as error:
                # It was deleted meanwhile, or the worker is ending.
                _log.debug("Files behind placeholders were not all looked at: %s", error)
            except Exception:  # noqa: BLE001 (nobody waits for it; the next look may go well)
                _log.exception("Files behind placeholders could not be looked at")


def stamps_of(files: Iterable[Path]) -> dict[Path, Stamp]:
    """What tells that one of *files* has changed; looks, and follows links."""
    return {each: _stamp(each) for each in files}


def _stamp(file: Path) -> Stamp:
    try:
        found = file.stat()
    except (OSError, ValueError):
        return None
    return found.st_mtime_ns, found.st_ino, found.st_size
