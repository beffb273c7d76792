"""The author guide's connector, with a task that ends its own process behind records that a test has chosen."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import letters

from end_to_end.dying_task import Deaths
from headrace.connect.task import SourceTask


class DyingLettersTask(letters.LettersTask):
    """Reads letters, and dies."""

    def start(self, config: Mapping[str, str]) -> None:  # pyright: ignore[reportIncompatibleMethodOverride]
        """See :class:`~headrace.connect.task.SourceTask`."""
        self._deaths = Deaths(config)
        super().start(config)

    def poll(self) -> Any:  # noqa: ANN401 (what is cut is a poll's result as before)
        """See :class:`~headrace.connect.task.SourceTask`."""
        self._deaths.come()
        return self._deaths.cut(super().poll())


class DyingLetters(letters.LettersConnector):
    """The connector with such tasks."""

    task_class: ClassVar[type[SourceTask]] = DyingLettersTask
