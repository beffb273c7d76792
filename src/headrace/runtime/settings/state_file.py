"""Where a worker's SQLite file is, and what depends on its being found again."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path

from headrace.connect.errors import ConfigError
from headrace.runtime.settings.worker_config import WorkerConfig


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


def make_folder(config: WorkerConfig, path: Path) -> None:
    """Make the folder of the state file at *path*, unless *config* names that file.

    A folder that was named and is not there is a mistake in the name: a new state file would mean a new
    worker, which sends everything again. Raises :class:`~headrace.connect.errors.ConfigError` for it, and
    when a folder cannot be made. Called once, before the file is opened.
    """
    folder = path.parent
    if config.state_file:
        if not folder.is_dir():
            raise _refused(f"There is no folder {folder}. Make it, or correct the path.")
        return
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        told = f"Its folder {folder} cannot be made: {error.strerror}."
        raise _refused(f"{told} Set state.file to a path that can be written.") from error


def new_identity(config: WorkerConfig, group_id: str, path: Path) -> str:
    """What to tell when a worker's progress begins anew because its state file was not there before."""
    ways = [f"state.file={path}"]
    if config.offsets_in_topic:
        ways.insert(0, f"group.id={group_id}")
    return (
        f"This worker is new: it has made the state file {path} and is called group.id={group_id}. "
        f"Nothing counts as sent yet. Set {' or '.join(ways)} to keep its progress when its "
        "configuration file is moved or renamed."
    )


def _refused(sentence: str) -> ConfigError:
    return ConfigError([("state.file", sentence)], where="The worker's configuration")
