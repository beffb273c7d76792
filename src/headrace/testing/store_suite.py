"""The conformance suite of stores of objects: subclass it, and define its fixtures ``store`` and ``put``."""

from __future__ import annotations

import io
import os
import pickle
import time
from collections.abc import Callable, Mapping

import pytest

from headrace.stores.errors import (
    KeyNotRepresentableError,
    ObjectChangedError,
    ObjectError,
    ObjectGoneError,
)
from headrace.stores.store import Store

Put = Callable[[str, bytes], object]
"""Makes an object, or overwrites it with a new version."""

TagsOf = Callable[[str], Mapping[str, str]]

PATH_KEYS = (
    "a/b/c",
    "a%20b",
    "a%2Fb",
    "a b+c",
    "back\\slash",
    "h#h",
    "q?x=1&y=2",
    "quote'\"<&>",
    "~tilde*[]",
    "control\x01\x1f\r\t",
    "é/ü",
    "\ufffd",
    "\U0001f600",
)
"""Keys that also are paths of a disk."""
OTHER_KEYS = ("a//b", "a/../b", "a/./b", "../up", "..", ".", "/lead", "trail/", "//")
"""Keys of object stores that cannot be paths of a disk."""
_AN_HOUR_MS = 3_600_000
DATA = bytes(range(256)) * 5


class StoreSuite:
    """Tests a :class:`~headrace.stores.store.Store` that is empty and new each time.

    *exact_keys* come back as they were put, and *refused_keys* are refused by name.
    """

    exact_keys: tuple[str, ...] = PATH_KEYS
    refused_keys: tuple[str, ...] = ("\ud800",)

    @pytest.fixture
    def store(self) -> Store:
        """The store under test; a subclass replaces this."""
        raise NotImplementedError

    @pytest.fixture
    def put(self) -> Put:
        """Makes objects in ``store``; a subclass replaces this."""
        raise NotImplementedError

    @pytest.fixture
    def tags_of(self) -> TagsOf | None:
        """The tags of an object in ``store``; a subclass whose store has tags replaces this."""
        return None

    def test_an_empty_store_lists_nothing(self, store: Store) -> None:
        """An empty store gives an empty listing, not an error."""
        assert list(store.list()) == []

    def test_keys_rise_by_their_utf8_bytes(self, store: Store, put: Put) -> None:
        """Folders sort where their keys do, and characters beyond 16 bits after all others."""
        keys = ["b", "a/z", "a.txt", "a-1", "a/b/c", "a0", "\U0001f600", "\ufffd", "Z", "é"]
        for key in keys:
            put(key, b"")

        assert sorted(keys, key=str.encode) == [each.key for each in store.list()]

    def test_a_listing_tells_what_head_tells(self, store: Store, put: Put) -> None:
        """Size, version, time and class are the same from both."""
        put("folder/a", b"abc")
        (listed,) = store.list()

        assert listed == store.head("folder/a")
        assert listed.size == len(b"abc")
        assert abs(listed.modified_ms - time.time() * 1000) < _AN_HOUR_MS
        assert listed.storage_class is None

    def test_special_keys_come_back_exactly(self, store: Store, put: Put) -> None:
        """Each object is listed under its key, and opened by it."""
        for key in self.exact_keys:
            put(key, key.encode())

        found = {each.key: each.version for each in store.list()}
        assert set(self.exact_keys) == set(found)
        for key, version in found.items():
            assert key.encode() == store.open(key, version).read()
            assert len(key.encode()) == store.head(key).size

    def test_a_key_that_cannot_be_used_is_refused_by_name(self, store: Store, put: Put) -> None:
        """No read or copy uses another key that only looks similar."""
        put("a", b"abc")
        version = store.head("a").version
        for key in self.refused_keys:
            for action in (
                lambda key=key: store.head(key),
                lambda key=key: store.open(key, version),
                lambda key=key: store.copy("a", version, key),
                lambda key=key: store.delete(key, version),
            ):
                with pytest.raises(KeyNotRepresentableError) as refused:
                    action()
                assert key == refused.value.key

        assert [each.key for each in store.list()] == ["a"]

    def test_a_prefix_may_end_inside_a_name(self, store: Store, put: Put) -> None:
        """A prefix is text, not a folder."""
        for key in ("ab", "abc/d", "abd", "ac", "x/ab", "ABC"):
            put(key, b"")

        assert [each.key for each in store.list("abc")] == ["abc/d"]
        assert [each.key for each in store.list("abc/")] == ["abc/d"]
        assert [each.key for each in store.list("ab")] == ["ab", "abc/d", "abd"]
        assert list(store.list("abc/d/")) == []
        assert list(store.list("nothing")) == []

    def test_a_listing_begins_after_a_key(self, store: Store, put: Put) -> None:
        """The key itself is left out, and need not exist."""
        keys = ["a-", "a/b", "a/c/d", "a/c/e", "a/d", "a0", "b"]
        for key in keys:
            put(key, b"")

        for after in ("", "a", "a.", "a/c/d", "a/c", "a/c/", "a/c/dd", "a0", "b", "zz"):
            assert [key for key in keys if key > after] == [
                each.key for each in store.list(start_after=after)
            ]
        assert [each.key for each in store.list("a/c", "a/c/d")] == ["a/c/e"]

    def test_what_is_not_there_is_gone(self, store: Store, put: Put) -> None:
        """Also below an object and where there is only a folder; a deletion has then succeeded."""
        put("a/b", b"abc")
        version = store.head("a/b").version
        for key in ("none", "a", "a/b/c"):
            with pytest.raises(ObjectGoneError) as gone:
                store.head(key)
            with pytest.raises(ObjectGoneError):
                store.open(key, version)
            with pytest.raises(ObjectGoneError):
                store.copy(key, version, "target")
            store.delete(key, version)
            assert key == gone.value.key

    def test_bytes_are_read_from_any_position(self, store: Store, put: Put) -> None:
        """In pieces of any size, and at the end a read returns nothing."""
        put("a", DATA)
        version = store.head("a").version
        for position in (0, 1, 700, len(DATA) - 1, len(DATA)):
            for piece in (1000, len(DATA) + 1):
                with store.open("a", version, position, size=len(DATA)) as opened:
                    assert position == opened.tell()
                    read = b"".join(iter(lambda: opened.read(piece) or b"", b""))  # noqa: B023
                    assert DATA[position:] == read
                    assert opened.read(1) == b""

    def test_an_object_may_be_empty(self, store: Store, put: Put) -> None:
        """It is listed, and ends at once."""
        put("a", b"")
        (found,) = store.list()

        assert store.open("a", found.version, 0, size=0).read() == b""
        assert store.open("a", found.version).read() == b""

    def test_a_stream_can_seek(self, store: Store, put: Put) -> None:
        """Forward, back, from the end, and beyond it."""
        put("a", DATA)
        with store.open("a", store.head("a").version) as opened:
            for offset, whence, position in (
                (100, os.SEEK_SET, 100),
                (50, os.SEEK_CUR, 160),
                (-300, os.SEEK_END, len(DATA) - 300),
                (3, os.SEEK_SET, 3),
            ):
                assert position == opened.seek(offset, whence)
                assert DATA[position : position + 10] == opened.read(10)
            opened.seek(len(DATA) + 5)
            assert opened.read(1) == b""
            assert io.BufferedReader(_rewound(opened)).read() == DATA  # type: ignore[arg-type]

    def test_a_changed_object_is_left_alone(self, store: Store, put: Put) -> None:
        """No action for one version affects another one."""
        put("a", b"one")
        old = store.head("a").version
        put("a", b"other")

        for action in (
            lambda: store.open("a", old),
            lambda: store.open("a", old, 2),
            lambda: store.copy("a", old, "copy"),
            lambda: store.delete("a", old),
        ):
            with pytest.raises(ObjectChangedError) as changed:
                action()
            assert changed.value.key == "a"
        assert [(each.key, each.size) for each in store.list()] == [("a", 5)]

    def test_a_copy_is_a_second_object(self, store: Store, put: Put) -> None:
        """The copy may be in a new folder, and replaces what was there."""
        put("a", DATA)
        put("old/b", b"before")
        version = store.head("a").version

        for target in ("new/folder/a", "old/b"):
            copied = store.copy("a", version, target)
            assert (target, len(DATA)) == (copied.key, copied.size)
            assert copied == store.head(target)
            assert store.open(target, copied.version).read() == DATA
        assert [each.key for each in store.list()] == ["a", "new/folder/a", "old/b"]

    def test_what_is_deleted_is_gone(self, store: Store, put: Put) -> None:
        """A second deletion succeeds, too."""
        put("a", b"abc")
        put("b", b"abc")
        version = store.head("a").version
        assert store.delete("a", version) is True
        assert store.delete("a", version) is False

        assert [each.key for each in store.list()] == ["b"]

    def test_tags_are_added(self, store: Store, put: Put, tags_of: TagsOf | None) -> None:
        """Other tags stay; a store without tags says so."""
        put("a", b"abc")
        version = store.head("a").version
        if tags_of is None:
            assert not store.capabilities.has_tags
            with pytest.raises(NotImplementedError):
                store.tag("a", version, {"done": "1"})
            return
        store.tag("a", version, {"done": "1", "by": "x"})
        store.tag("a", version, {"done": "2"})

        assert tags_of("a") == {"done": "2", "by": "x"}
        put("a", b"other")
        with pytest.raises(ObjectChangedError):
            store.tag("a", version, {"done": "3"})
        with pytest.raises(ObjectGoneError):
            store.tag("none", version, {"done": "3"})

    def test_errors_cross_processes(self, store: Store) -> None:
        """Errors name store and key, also after pickling."""
        with pytest.raises(ObjectError) as gone:
            store.head("none")
        again = pickle.loads(pickle.dumps(gone.value))  # noqa: S301 (our own bytes)

        assert (type(gone.value), store.name, "none") == (type(again), again.store, again.key)
        assert str(gone.value) == str(again)


def _rewound(opened: io.RawIOBase | io.BufferedIOBase) -> io.RawIOBase | io.BufferedIOBase:
    opened.seek(0)
    return opened
