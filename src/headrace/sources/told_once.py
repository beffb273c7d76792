"""Warnings about objects, of which each is told once and not at every look."""

from __future__ import annotations

import logging


class ToldOnce:
    """Warns through *log*. Lives as long as the connector; used on one thread."""

    def __init__(self, log: logging.Logger) -> None:
        self._log = log
        self._told = dict[str, str]()

    def tell(self, name: str, sentence: str | None) -> None:
        """Log *sentence* about the object called *name*, unless it was the last one about it; ``None``: nothing."""
        if sentence is not None and self._told.get(name) != sentence:
            self._told[name] = sentence
            self._log.warning("%s: %s", name, sentence)
