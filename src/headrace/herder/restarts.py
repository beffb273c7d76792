"""Restarts of connectors: asked for, after a failure, and when a placeholder stands for something else."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum, auto
from pathlib import Path
from typing import Final, Self

from headrace.config.connector_config import ConnectorConfig
from headrace.config.secret_values import Resolution
from headrace.herder.answers import ConnectorStatus, Standing, State
from headrace.herder.errors import RequestError
from headrace.herder.protocol import Config
from headrace.herder.requests import RestartRequest


@dataclass(frozen=True, slots=True, kw_only=True)
class RestartPlan:
    """What is restarted: the connector itself, some of its tasks, or nothing at all."""

    connector: bool
    tasks: Sequence[int]
    status: ConnectorStatus
    """How everything is shown to whoever asked."""

    @property
    def is_empty(self) -> bool:
        """Whether nothing is to be restarted."""
        return not self.connector and not self.tasks


def restart_plan(request: RestartRequest, status: ConnectorStatus) -> RestartPlan:
    """What *request* chooses of a connector that is as *status* says."""
    connector = _is_chosen(status.connector, request)
    tasks = [
        each.task
        for each in status.tasks
        if each.task is not None and request.include_tasks and _is_chosen(each, request)
    ]
    shown = replace(
        status,
        connector=_restarting(status.connector) if connector else status.connector,
        tasks=[_restarting(each) if each.task in tasks else each for each in status.tasks],
    )
    return RestartPlan(connector=connector, tasks=tasks, status=shown)


def _is_chosen(standing: Standing, request: RestartRequest) -> bool:
    return not request.only_failed or standing.state is State.FAILED


def _restarting(standing: Standing) -> Standing:
    # With the trace of the failure that is the reason for it, as in Kafka Connect.
    return replace(standing, state=State.RESTARTING)


LONGEST_SECONDS: Final = 300.0
"""The longest pause; a run that lasted longer has not failed for the reason of the one before it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RestartPolicy:
    """How often in a row a connector is restarted by itself, and the first pause, which doubles."""

    attempts: int
    first_seconds: float

    @classmethod
    def of(cls, props: Mapping[str, str]) -> Self:
        """What a connector's valid configuration says."""
        config = ConnectorConfig.parse(props)
        return cls(
            attempts=config.restart_max_attempts, first_seconds=config.restart_backoff_ms / 1e3
        )

    def pause(self, failures: int) -> float | None:
        """Seconds until the next attempt after so many *failures* in a row; ``None`` for none. Pure."""
        if failures > self.attempts:
            return None
        return min(self.first_seconds * 2.0 ** (failures - 1), LONGEST_SECONDS)


class AutomaticRestarts:
    """Counts the failures of each connector. Used by the herder's thread."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._policies: dict[str, tuple[RestartPolicy, float]] = {}
        self._failures: dict[str, int] = {}

    def begins(self, name: str, props: Mapping[str, str]) -> None:
        """A run of the connector begins, with this configuration."""
        self._policies[name] = (RestartPolicy.of(props), self._clock())

    def forget(self, name: str) -> None:
        """Somebody has changed or restarted the connector: count again."""
        self._failures.pop(name, None)
        self._policies.pop(name, None)

    def attempts(self, name: str) -> int:
        """How often in a row the connector is restarted at most."""
        return self._policies[name][0].attempts if name in self._policies else 0

    def pause_after_failure(self, name: str) -> float | None:
        """Seconds until the connector, which has failed, is to be restarted; ``None`` for never."""
        if name not in self._policies:
            return None
        policy, began = self._policies[name]
        lasted = self._clock() - began
        self._failures[name] = 1 if lasted > LONGEST_SECONDS else self._failures.get(name, 0) + 1
        return policy.pause(self._failures[name])


_log = logging.getLogger(__name__)

LOOK_SECONDS: Final = 5.0
"""How often files are looked at: soon enough for a person who waits, and next to nothing in work."""

_ACTION: Final = "config.action.reload"
_HINT: Final = f"({_ACTION}=none)"
Stamp = tuple[int, int, int] | None
"""When a file was modified, which one it is, and its size; ``None`` for one that is not there."""


class PlaceholderChanges(Enum):
    """What has become of a configuration since its connector was started."""

    NONE = auto()
    UNREADABLE = auto()
    """Not all of its placeholders can be resolved at the moment: a file may just be written again."""
    LEFT_ALONE = auto()
    """It has changed, and says itself that nothing is to be done."""
    RESTART = auto()


def news(began: Resolution, now: Resolution) -> PlaceholderChanges:
    """What there is to be done about a connector that *began* with the one and would have the other. Pure."""
    if now.problems:
        return PlaceholderChanges.UNREADABLE
    if now.resolved == began.resolved:
        return PlaceholderChanges.NONE
    action = (now.resolved.get(_ACTION) or "restart").strip()
    return PlaceholderChanges.LEFT_ALONE if action == "none" else PlaceholderChanges.RESTART


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
        """Look once. Called by the thread, and by no one else once that runs."""
        begun = self._begun()
        self._seen = {name: seen for name, seen in self._seen.items() if name in begun}
        for name, began in begun.items():
            stamps = stamps_of(began.files)
            before, known = self._seen.get(name, (None, None))
            if before is not began or known != stamps:
                self._act(name, news(began, self._resolved(began.given)))
                # Taken before the files were read: what has changed meanwhile is seen the next time.
                self._seen[name] = (began, stamps)

    def _act(self, name: str, found: PlaceholderChanges) -> None:
        if found is PlaceholderChanges.RESTART:
            _log.info("A file that connector %s takes values from has changed: restarting it", name)
            self._restart(name)
        elif found is PlaceholderChanges.LEFT_ALONE:
            _log.info(
                "A file that connector %s takes values from has changed; it goes on with the old ones "
                "until it is restarted %s",
                name,
                _HINT,
            )
        elif found is PlaceholderChanges.UNREADABLE:
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
            except Exception:  # noqa: BLE001 (no one waits for it; the next look may go well)
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
