"""The levels of loggers, read and changed while the worker runs, with Java's names; also applied in its tasks' processes."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from headrace.connect.setting import trimmed_as_java

ROOT: Final = "root"
"""The name by which the root logger is asked for."""

LEVELS: Final = {
    "ALL": 1,
    "TRACE": 5,
    "DEBUG": logging.DEBUG,
    "INFO": logging.INFO,
    "WARN": logging.WARNING,
    "ERROR": logging.ERROR,
    "FATAL": logging.CRITICAL,
    "OFF": logging.CRITICAL + 10,
}
"""Java's names for levels as levels of ``logging``; ALL and OFF are below and above all of its own."""


class UnknownLevelError(ValueError):
    """There is no level of that name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LoggerLevel:
    """The level that counts for a logger; *last_modified_ms* is ``None`` if no one has changed it here."""

    level: str
    last_modified_ms: int | None


class Levels:
    """Reads and changes levels; from any thread, one change at a time."""

    def __init__(
        self, root: logging.Logger | None = None, *, clock: Callable[[], float] = time.time
    ) -> None:
        self._root = root or logging.getLogger()
        self._clock = clock
        self._modified_ms: dict[str, int] = {}
        # Held from reading the levels before a change until they are set.
        self._changing = threading.Lock()

    def every(self) -> dict[str, LoggerLevel]:
        """The loggers that have a level of their own, by name, and the root."""
        own = {logger.name for logger in self._loggers() if logger.level != logging.NOTSET}
        return {
            name: self._level_of(logger)
            for name, logger in sorted(self._by_name().items())
            if logger is self._root or logger.name in own
        }

    def of(self, name: str) -> LoggerLevel | None:
        """The level of an existing logger; ``None`` for an unknown name, for which no logger is created."""
        logger = self._root if name.lower() == ROOT else self._by_name().get(name)
        return None if logger is None else self._level_of(logger)

    def change(self, name: str, word: str) -> Sequence[str]:
        """Give *name*, and every logger whose name begins with it, the level *word*.

        White space around *word*, as Java trims it, is ignored. Returns the sorted names of the loggers whose effective
        level has changed. The root stands for all. Creates the logger *name* if it does not exist. Raises
        :class:`UnknownLevelError`.
        """
        level = level_of(word)
        with self._changing:
            affected = self._affected(name)
            now_ms = int(self._clock() * 1000)
            changed = sorted(
                _shown_name(logger, self._root)
                for logger in affected
                if logger.getEffectiveLevel() != level
            )
            for logger in affected:
                logger.setLevel(level)
            self._modified_ms.update(dict.fromkeys(changed, now_ms))
        return changed

    def _affected(self, name: str) -> list[logging.Logger]:
        if name.lower() == ROOT:
            return [self._root, *self._loggers()]
        self._root.manager.getLogger(name)
        return [logger for logger in self._loggers() if logger.name.startswith(name)]

    def _by_name(self) -> dict[str, logging.Logger]:
        return {ROOT: self._root} | {logger.name: logger for logger in self._loggers()}

    def _loggers(self) -> list[logging.Logger]:
        # Others are placeholders: names that have loggers below them but are not loggers.
        known = list(self._root.manager.loggerDict.values())
        return [each for each in known if isinstance(each, logging.Logger)]

    def _level_of(self, logger: logging.Logger) -> LoggerLevel:
        modified_ms = self._modified_ms.get(_shown_name(logger, self._root))
        return LoggerLevel(
            level=level_name(logger.getEffectiveLevel()), last_modified_ms=modified_ms
        )


def level_of(word: str) -> int:
    """The level of ``logging`` that *word* names to Java, whatever its case. Raises :class:`UnknownLevelError`."""
    level = LEVELS.get(trimmed_as_java(word).upper())
    if level is None:
        raise UnknownLevelError(word)
    return level


def level_name(level: int) -> str:
    """Java's name for the least level that *level* lets through."""
    return next((name for name, least in LEVELS.items() if level <= least), "OFF")


def _shown_name(logger: logging.Logger, root: logging.Logger) -> str:
    return ROOT if logger is root else logger.name


def own_levels() -> dict[str, int]:
    """The loggers of this process, by name and without the root, that have a level of their own."""
    known = list(logging.Logger.manager.loggerDict.items())
    return {
        name: logger.level
        for name, logger in known
        if isinstance(logger, logging.Logger) and logger.level != logging.NOTSET
    }


class ShippedLevels:
    """Gives loggers of this process levels for a while; one call at a time."""

    def __init__(self) -> None:
        self._before: dict[str, int] = {}

    def carry(self, root: int, levels: Mapping[str, int]) -> None:
        """Apply *levels*, and *root* for the others; levels from an earlier call are no longer in effect."""
        carried = {**levels, logging.root.name: root}
        for name in self._before.keys() - carried.keys():
            logging.getLogger(name).setLevel(self._before.pop(name))
        for name, level in carried.items():
            logger = logging.getLogger(name)
            self._before.setdefault(name, logger.level)
            if logger.level != level:
                # Only if needed: it clears the caches of all loggers.
                logger.setLevel(level)

    def restore(self) -> None:
        """Give each logger the level that it had."""
        for name, level in self._before.items():
            logging.getLogger(name).setLevel(level)
        self._before.clear()
