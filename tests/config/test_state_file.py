"""The folder of a state file, and what is logged when the file is new."""

from __future__ import annotations

from pathlib import Path

import pytest

from headrace.config.state_file import make_folder, new_identity
from headrace.config.worker_config import WorkerConfig
from headrace.connect.errors import ConfigError

CONVERTERS = {"key.converter": "string", "value.converter": "string"}


def _worker(**settings: str) -> WorkerConfig:
    return WorkerConfig.parse(
        CONVERTERS | {key.replace("_", "."): value for key, value in settings.items()}
    )


def test_a_named_state_file_in_no_folder_is_refused(tmp_path: Path) -> None:
    """A slip in the path would begin a new worker, which sends everything again."""
    path = tmp_path / "stat" / "worker.db"

    with pytest.raises(ConfigError, match=f"state.file: The folder {path.parent} does not exist"):
        make_folder(_worker(state_file=str(path)), path)

    assert not path.parent.exists()


def test_the_folder_of_the_default_is_made(tmp_path: Path) -> None:
    """No one named it, so no one can have meant another one."""
    path = tmp_path / "a" / "b" / "worker.db"

    make_folder(_worker(), path)

    assert path.parent.is_dir()


def test_a_folder_that_cannot_be_made_is_reported(tmp_path: Path) -> None:
    """Such as below a file."""
    (tmp_path / "home").write_text("")

    with pytest.raises(
        ConfigError, match=r"state\.file: Its folder .* cannot be created: Not a dir"
    ):
        make_folder(_worker(), tmp_path / "home" / "state" / "worker.db")


@pytest.mark.parametrize(
    ("settings", "ways"),
    [
        ({}, "Set group.id=g or state.file=/s.db to keep"),
        ({"exactly_once_source_support": "disabled"}, "Set state.file=/s.db to keep"),
    ],
)
def test_a_new_worker_says_how_it_is_kept(settings: dict[str, str], ways: str) -> None:
    """By its name while offsets are in Kafka; with its file while they are in there."""
    message = new_identity(_worker(**settings), "g", Path("/s.db"))

    assert "state file /s.db, uses group.id=g, and" in message
    assert ways in message


def test_a_state_file_with_an_absolute_path_needs_no_advice() -> None:
    """A relative one lies in another folder once the configuration file does."""
    path = Path("/w/s.db")

    assert new_identity(_worker(state_file="/w/s.db"), "g", path).endswith("source offsets yet.")
    assert "or state.file=/w/s.db to keep" in new_identity(_worker(state_file="s.db"), "g", path)
