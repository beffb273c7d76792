"""What ``files.path`` says when it speaks of local disk: paths as keys, which are those without their first slash."""

from __future__ import annotations

import os

from headrace.connectors.files.selecting.addresses import Selector


def local_key(path: str) -> str:
    """The key of *path*, which may be relative."""
    return os.path.abspath(path).lstrip("/")  # noqa: PTH100 (keeps symbolic links)


def local_selector(path: str) -> Selector:
    """What the entry *path* of ``files.path`` selects on local disk, of keys."""
    selector = Selector(text=local_key(path))
    # Whether it is a folder or a file can only the disk tell; a file is compared as a whole.
    return selector if selector.has_glob else Selector(text=f"{selector.text}/".lstrip("/"))
