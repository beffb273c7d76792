"""Where a worker's SQLite file is."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path

from headrace.runtime.worker_config import WorkerConfig


def state_path(config: WorkerConfig, worker_file: Path, environ: Mapping[str, str]) -> Path:
    """Where the SQLite file is: as configured, or one of its own for *worker_file* below the user's state.

    Pure; makes no folder.
    """
    if config.state_file:
        return worker_file.parent / Path(config.state_file).expanduser()
    home = Path(environ.get("HOME", "~")).expanduser()
    states = Path(environ.get("XDG_STATE_HOME") or home / ".local" / "state")
    mark = hashlib.sha256(str(worker_file.absolute()).encode()).hexdigest()[:8]
    return states / "headrace" / f"{worker_file.stem}-{mark}.db"
