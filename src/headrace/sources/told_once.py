"""Warnings about objects, of which each is told once and not at every look."""

from __future__ import annotations

import logging
from collections import OrderedDict
from typing import Final

MOST: Final = 100_000
"""Of so many names is remembered what was told: a few dozen megabytes, and a log is not to be flooded by fewer."""


class ToldOnce:
    """Warns through *log*, and remembers the last of it, of *most* names. Lives as long as the connector; used on one thread."""

    def __init__(self, log: logging.Logger, *, most: int = MOST) -> None:
        self._log = log
        self._most = most
        self._told = OrderedDict[str, str]()

    def tell(self, name: str, sentence: str | None) -> None:
        """Log *sentence* about the object called *name*, unless it was the last one about it; ``None``: nothing."""
        if sentence is None:
            return
        known = self._told.get(name)
        self._told[name] = sentence
        # What is still so is asked at each look, and stays; what is gone is not any more.
        self._told.move_to_end(name)
        if len(self._told) > self._most:
            self._told.popitem(last=False)
        if known != sentence:
            self._log.warning("%s: %s", name, sentence)
