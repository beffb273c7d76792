"""The local disk as a store."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from headrace.connect.errors import TaskFailedError
from headrace.stores.errors import (
    KeyNotRepresentableError,
    ObjectChangedError,
    ObjectGoneError,
)
from headrace.stores.local import LocalStore
from headrace.testing.store_suite import OTHER_KEYS, StoreSuite


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """The folder that is the store, inside one that is not."""
    folder = tmp_path / "root"
    folder.mkdir()
    return folder


class TestLocalStore(StoreSuite):
    """A folder on disk, in the suite of all stores."""

    refused_keys = (*OTHER_KEYS, "", "nul\0", "\ud800")

    @pytest.fixture
    def store(self, root: Path) -> LocalStore:
        """See the suite."""
        return LocalStore(str(root))

    @pytest.fixture
    def put(self, root: Path) -> Callable[[str, bytes], None]:
        """See the suite."""

        def put(key: str, data: bytes) -> None:
            path = root / key
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)

        return put


def test_a_missing_root_is_not_an_empty_store(tmp_path: Path):
    """A disk that is not mounted must not look like one without files."""
    with pytest.raises(TaskFailedError, match="does not exist"):
        list(LocalStore(str(tmp_path / "none")).list())


def test_links_do_not_lead_out_or_round(root: Path, tmp_path: Path):
    """Links lead to files below the root, or nowhere."""
    (tmp_path / "secret").write_bytes(b"x")
    (root / "folder").mkdir()
    (root / "folder" / "file").write_bytes(b"abc")
    (root / "out").symlink_to(tmp_path / "secret")
    (root / "outer").symlink_to(tmp_path)
    (root / "round").symlink_to(root)
    (root / "nowhere").symlink_to(root / "none")
    (root / "in").symlink_to(root / "folder" / "file")
    os.mkfifo(root / "pipe")
    store = LocalStore(str(root))

    assert ["folder/file", "in"] == [each.key for each in store.list()]
    for key in ("out", "outer/secret", "pipe"):
        with pytest.raises(ObjectGoneError):
            store.open(key, "1-1-1")


def test_a_name_that_is_no_text_ends_the_listing(root: Path):
    """Names on disk are bytes, offsets are text; and nothing is left out silently."""
    for name in (b"a", b"b\xff", b"c"):
        Path(os.fsdecode(bytes(root) + b"/" + name)).write_bytes(b"")
    store = LocalStore(str(root))

    with pytest.raises(KeyNotRepresentableError, match="not UTF-8") as refused:
        list(store.list())

    assert "b\udcff" == refused.value.key


def test_a_file_that_changes_while_it_is_read_has_no_end(root: Path):
    """What was read may be of two versions."""
    (root / "a").write_bytes(b"abcdef")
    store = LocalStore(str(root))
    version = store.head("a").version
    for change in (lambda: os.truncate(root / "a", 4), lambda: os.utime(root / "a", ns=(1, 1))):
        with store.open("a", version) as opened:
            assert b"ab" == opened.read(2)
            change()
            with pytest.raises(ObjectChangedError, match="while it was read"):
                opened.read(10)
        version = store.head("a").version


def test_a_copy_that_failed_leaves_nothing(root: Path):
    """Neither half a copy nor an unfinished file."""
    (root / "a").write_bytes(b"abc")
    (root / "folder").mkdir()
    store = LocalStore(str(root))

    with pytest.raises(TaskFailedError):
        store.copy("a", store.head("a").version, "folder")
    assert ["a"] == [each.key for each in store.list()]
    assert {"a", "folder"} == {each.name for each in root.rglob("*")}
