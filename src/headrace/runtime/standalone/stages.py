"""What a worker is doing, in KIP-1017's sentence, for requests that take too long."""

from __future__ import annotations

import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """Something that was begun, and perhaps completed; *description* goes on from "is currently"."""

    description: str
    began: datetime
    completed: datetime | None = None

    def sentence(self) -> str:
        """Kafka Connect's summary."""
        began = _instant(self.began)
        if self.completed is None:
            return f"The worker is currently {self.description}, which began at {began}."
        return (
            f"The last operation the worker completed was {self.description}, which began at {began} "
            f"and completed at {_instant(self.completed)}."
        )


class Stages:
    """What goes on, and what was last. Any thread may enter a stage, and read."""

    def __init__(self, now: Callable[[], datetime] = lambda: datetime.now(UTC)) -> None:
        self._now = now
        self._current: list[Stage] = []
        self._last: Stage | None = None
        # Two threads may enter and leave at once.
        self._guard = threading.Lock()

    @contextmanager
    def during(self, description: str) -> Generator[None]:
        """Be in that stage while the block runs."""
        stage = Stage(description=description, began=self._now())
        with self._guard:
            self._current.append(stage)
        try:
            yield
        finally:
            with self._guard:
                self._current.remove(stage)
                self._last = replace(stage, completed=self._now())

    def sentence(self) -> str | None:
        """What goes on, the latest of it, or what was completed last; ``None`` before the first stage."""
        with self._guard:
            shown = self._current[-1] if self._current else self._last
        return None if shown is None else shown.sentence()


def _instant(moment: datetime) -> str:
    """As Java writes an instant: in UTC, with milliseconds."""
    text = moment.astimezone(UTC).isoformat(timespec="milliseconds")
    return text.removesuffix("+00:00") + "Z"
