"""The worker's state file: where it lies, and its folder."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path

from headrace.config.worker_config import WorkerConfig
from headrace.connect.errors import ConfigError


def state_path(config: WorkerConfig, worker_file: Path, environ: Mapping[str, str]) -> Path:
    """The path of the SQLite file: as configured, or one for each *worker_file* below the user's state directory.

    Pure; makes no folder.
    """
    if config.state_file:
        return worker_file.parent / Path(config.state_file).expanduser()
    return own_state(worker_file, environ, suffix=".db")


def own_state(file: Path, environ: Mapping[str, str], *, suffix: str = "") -> Path:
    """The path below the user's state directory that belongs to the configuration *file* alone. Pure."""
    home = Path(environ.get("HOME", "~")).expanduser()
    states = Path(environ.get("XDG_STATE_HOME") or home / ".local" / "state")
    mark = hashlib.sha256(str(file.absolute()).encode()).hexdigest()[:8]
    return states / "headrace" / f"{file.stem}-{mark}{suffix}"


def make_folder(config: WorkerConfig, path: Path) -> None:
    """Make the folder of the state file at *path*, unless *config* names that file.

    A configured folder that does not exist is taken for a mistake in its name: a new state file would mean a new
    worker, which sends everything again. Raises :class:`~headrace.connect.errors.ConfigError` for it, and
    when a folder cannot be created. Called once, before the file is opened.
    """
    folder = path.parent
    if config.state_file:
        if not folder.is_dir():
            raise _refused(f"The folder {folder} does not exist. Create it, or correct the path.")
        return
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        message = f"Its folder {folder} cannot be created: {error.strerror}."
        raise _refused(f"{message} Set state.file to a path that can be written.") from error


def new_identity(config: WorkerConfig, group_id: str, path: Path) -> str:
    """The message for a worker without progress, because its state file has just been created."""
    created = (
        f"This worker is new: it has created the state file {path}, uses group.id={group_id}, and has no source "
        "offsets yet."
    )
    if config.state_file and Path(config.state_file).expanduser() == path.absolute():
        # It is found wherever a configuration file is, if there is one.
        return created
    ways = [f"state.file={path}"]
    if config.offsets_in_topic:
        ways.insert(0, f"group.id={group_id}")
    return f"{created} Set {' or '.join(ways)} to keep its progress when its configuration file is moved or renamed."


def _refused(sentence: str) -> ConfigError:
    return ConfigError([("state.file", sentence)], where="The worker's configuration")
