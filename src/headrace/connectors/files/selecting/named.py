"""The files that ``files.path`` names one by one."""

from __future__ import annotations

import os
from collections.abc import Set as AbstractSet

from headrace.connectors.files.config import FilesConfig


def named_on_disk(config: FilesConfig) -> AbstractSet[str]:
    """The paths that ``files.path`` names on local disk; none where it speaks of a store.

    Of such a file only its entry tells that it may be gone. Folders and globs are among them: no file is
    called like one of these.
    """
    return set(map(os.path.abspath, config.path)) if config.root is None else set[str]()
