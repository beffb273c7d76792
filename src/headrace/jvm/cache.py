"""The folder for files that can be fetched or made again: jars, trust stores, a Java home."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from headrace.connect.errors import ConnectError


def cache_folder(name: str) -> Path:
    """The folder *name* inside ``$HEADRACE_CACHE``, or ``~/.cache/headrace``, made when missing.

    Raises ConnectError, with what to do, where it cannot be written.
    """
    folder = cache_root() / name
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ConnectError(
            f"The cache folder {folder} cannot be created: {error.strerror}. "
            "Set HEADRACE_CACHE to a folder that can be written."
        ) from error
    return folder


def cache_root() -> Path:
    """The parent of all cache folders, which need not exist."""
    chosen = os.environ.get("HEADRACE_CACHE")
    if chosen:
        return Path(chosen).expanduser().absolute()
    shared = os.environ.get("XDG_CACHE_HOME")
    home = Path(shared) if shared else Path.home() / ".cache"
    return home.absolute() / "headrace"


@contextmanager
def locked(path: Path) -> Generator[None]:
    """Hold the lock file *path*; waits while another process holds it. The lock ends with its process."""
    with path.open("a") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
