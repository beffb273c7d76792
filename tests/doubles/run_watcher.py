"""The watcher of a run that a test joins."""

from __future__ import annotations

from collections.abc import Mapping, Sequence


class NoRunWatcher:
    """A ``RunWatcher`` that does nothing."""

    def has_tasks(self, configs: Sequence[Mapping[str, str]]) -> None:
        """Do nothing."""

    def has_begun(self) -> None:
        """Do nothing."""

    def has_ended(self, failure: Exception | None) -> None:
        """Do nothing."""
