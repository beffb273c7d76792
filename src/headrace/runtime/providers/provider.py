"""What looks values up, and why it may not find one. Sentences name places, and never a value."""

from __future__ import annotations

from pathlib import Path
from typing import Protocol


class LookupFailedError(ValueError):
    """There is no such value, or it may not be read; the message is for the user."""


class Provider(Protocol):
    """Looks values up, anew each time. Any thread may call."""

    def value(self, path: str, key: str) -> str:
        """The value of *key* in *path*. May read files. Raises :class:`LookupFailedError`."""
        ...

    def file(self, path: str, key: str) -> Path | None:
        """The file with that value, there or not; ``None`` when it is in none. Pure."""
        ...


def readable_path(path: str, allowed: tuple[str, ...]) -> Path:
    """*path*, which must lie in one of *allowed* if there are any; links are followed first.

    Raises :class:`LookupFailedError`.
    """
    if not path:
        raise LookupFailedError("it names no path")
    found = Path(path).resolve()
    if allowed and not any(found.is_relative_to(Path(each).resolve()) for each in allowed):
        raise LookupFailedError(f"{path} is not within allowed.paths of the provider")
    return found
