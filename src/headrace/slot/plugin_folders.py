"""Folders of plugins, from which a worker and its slots import."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path


def make_importable(folders: Iterable[str]) -> None:
    """Find modules in *folders*, too: behind all others, so that none of them takes the place of an installed one.

    A folder that this machine does not have is passed over. May be called again. Called once by a worker, and
    by each slot before its task is loaded.
    """
    for each in folders:
        if each not in sys.path and Path(each).is_dir():
            sys.path.append(each)
