"""The levels of one process's loggers in another, which logs for it."""

from __future__ import annotations

import logging
from collections.abc import Mapping


def own_levels() -> dict[str, int]:
    """The loggers of this process, by name and without the root, that have a level of their own."""
    known = list(logging.Logger.manager.loggerDict.items())
    return {
        name: logger.level
        for name, logger in known
        if isinstance(logger, logging.Logger) and logger.level != logging.NOTSET
    }


class CarriedLevels:
    """Gives loggers of this process levels for a while; one call at a time."""

    def __init__(self) -> None:
        self._before: dict[str, int] = {}

    def carry(self, root: int, levels: Mapping[str, int]) -> None:
        """From now on *levels* count, and *root* for the others; what was carried before counts no more."""
        carried = {**levels, logging.root.name: root}
        for name in self._before.keys() - carried.keys():
            logging.getLogger(name).setLevel(self._before.pop(name))
        for name, level in carried.items():
            logger = logging.getLogger(name)
            self._before.setdefault(name, logger.level)
            if logger.level != level:
                # It empties a cache of all loggers.
                logger.setLevel(level)

    def restore(self) -> None:
        """Give each logger the level that it had."""
        for name, level in self._before.items():
            logging.getLogger(name).setLevel(level)
        self._before.clear()
