"""Files that `files.path` names, that are taken away, and that are not there."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from headrace.connectors.files.config import FilesConfig
from headrace.connectors.files.local.awaited import Awaited
from headrace.connectors.files.progress import KnownFiles, whole


class Counted(KnownFiles):
    """Counts how often somebody goes through all of it."""

    walks = 0

    def __init__(self, *paths: Path) -> None:
        super().__init__({whole(str(path)): {"done": True} for path in paths}, {})

    def __iter__(self) -> Iterator[str]:
        self.walks += 1
        return super().__iter__()


def test_all_that_is_known_is_looked_through_once(tmp_path: Path):
    """And again when something was at the path: it may have been a folder."""
    path, told = tmp_path / "a", list[str]()
    config = FilesConfig.parse(
        {"files.path": str(path), "topic": "t", "files.after.commit": "delete"}
    )
    awaited = Awaited(config, lambda path, _: told.append(path))
    known = Counted(tmp_path / "b")
    for _ in range(3):
        assert str(path) in awaited.beside(known)
    assert (1, str(path)) == (known.walks, told[0])
    path.mkdir()
    assert str(path) not in awaited.beside(known)
    path.rmdir()

    assert str(path) not in awaited.beside(Counted(path / "c"))
