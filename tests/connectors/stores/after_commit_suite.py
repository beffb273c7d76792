"""What happens to objects once their records are committed, the same in every store: always to the version that was read."""

from __future__ import annotations

import logging
from dataclasses import replace

import pytest

from connectors.stores.files_place import FilesPlace, Stored, values
from connectors.stores.s3_proxy import Fault
from headrace.connect.config import ConfigError
from headrace.connectors.files.config import FilesConfig
from headrace.stores.catalogue import KINDS
from headrace.stores.store import Store, StoredObject

DELETE = {"files_after_commit": "delete"}
TAG = {"files_after_commit": "tag", "files_tag": "read=yes,by=headrace"}
ACTIONS = pytest.mark.parametrize("action", ["delete", "move", "tag"])


def has_tags(place: FilesPlace) -> bool:
    """Whether objects in *place* can be tagged."""
    return KINDS[place.root.partition(":")[0]].has_tags


def settings_of(place: FilesPlace, action: str) -> dict[str, str]:
    """The settings for *action*: what is moved goes to ``done/``."""
    if action == "tag" and not has_tags(place):
        pytest.skip("This store has no tags.")
    move = {"files_after_commit": "move", "files_move_to": place.address("done/")}
    return {"delete": DELETE, "move": move, "tag": TAG}[action]


class AfterCommitSuite:
    """Subclass it with the fixtures ``place``, which is empty and new each time, and ``store``, which shows it."""

    def test_objects_are_deleted_once_they_are_committed(self, place: FilesPlace) -> None:
        """What comes under the same key later is a new object."""
        place.put("in/a.txt", b"one\ntwo\n")
        place.put("in/empty.txt", b"")
        place.put("other.txt", b"other\n")
        stored: Stored = {}

        assert ["one"] == values(place.run(stored, "in/", stop_after=1, **DELETE))
        assert "in/a.txt" in place.listed()
        assert ["two"] == values(place.run(stored, "in/", **DELETE))

        assert (["other.txt"], {}) == (place.listed(), stored)
        place.put("in/a.txt", b"three\n")
        assert ["three"] == values(place.run(stored, "in/", **DELETE))

    def test_objects_are_moved_with_what_is_below_their_prefix(self, place: FilesPlace) -> None:
        """Odd keys, too; what lies there already is replaced."""
        for key in ("in/a.txt", "in/x//a.txt", "in/x/%20 #.txt"):
            place.put(key, key.encode())
        place.put("done/a.txt", b"before")
        stored: Stored = {}

        place.run(stored, "in/", files_recursive="true", **settings_of(place, "move"))

        assert ["done/a.txt", "done/x/%20 #.txt", "done/x//a.txt"] == place.listed()
        assert {} == stored
        assert ["in/a.txt"] == values(place.run(stored, "done/"))

    @pytest.mark.parametrize("action", ["delete", "move"])
    def test_the_marker_of_an_object_goes_with_it(self, place: FilesPlace, action: str) -> None:
        """What comes under its key later waits for its own; other markers stay."""
        marker = {"files_complete_marker": "{name}.done"}
        for key in ("in/a.txt", "in/a.txt.done", "in/b.txt.done"):
            place.put(key, b"one\n")

        assert ["one"] == values(place.run({}, "in/", **marker, **settings_of(place, action)))

        moved = ["done/a.txt", "done/a.txt.done"] if action == "move" else []
        assert [*moved, "in/b.txt.done"] == place.listed()

    def test_objects_are_tagged_and_not_read_again(self, place: FilesPlace) -> None:
        """Their entries stay, without the note; a store without tags refuses at once."""
        place.put("in/a.txt", b"one\n")
        stored: Stored = {}
        if not has_tags(place):
            with pytest.raises(ConfigError, match="have no tags"):
                FilesConfig.parse(place.props("in/", **TAG))
            return

        assert ["one"] == values(place.run(stored, "in/", **TAG))
        assert [] == place.run(stored, "in/", **TAG)

        assert {"read": "yes", "by": "headrace"} == place.tags("in/a.txt")
        entry = stored[place.partition("in/a.txt")]
        assert entry["done"]
        assert "cleanup" not in entry

    @ACTIONS
    def test_a_kill_around_the_action_is_no_harm(self, place: FilesPlace, action: str) -> None:
        """Before it, or between it and the commit that says so: what is gone already is done."""
        more = settings_of(place, action)
        place.put("in/a.txt", b"one\n")
        stored = place.read_all("in/", **more)
        assert ["in/a.txt"] == place.listed()
        assert "pending" == stored[place.partition("in/a.txt")]["cleanup"]
        before = dict(stored)

        assert [] == place.run(stored, "in/", **more)
        assert [] == place.run(before, "in/", **more)

        # Who did not delete it cannot know whether it comes back.
        (kept,) = before.values()
        assert (True, None if action == "tag" else "gone") == (kept["done"], kept.get("cleanup"))
        assert stored == (before if action == "tag" else {})
        left = {"delete": [], "move": ["done/a.txt"], "tag": ["in/a.txt"]}
        assert left[action] == place.listed()

    @ACTIONS
    def test_an_object_that_was_overwritten_is_left_and_told(
        self, place: FilesPlace, caplog: pytest.LogCaptureFixture, action: str
    ) -> None:
        """The action asks for the version that was read."""
        more = settings_of(place, action)
        place.put("in/a.txt", b"one\n")
        stored = place.read_all("in/", **more)
        place.put("in/a.txt", b"ONE\n")

        with caplog.at_level(logging.WARNING):
            assert [] == place.run(stored, "in/", files_changed="ignore", **more)

        assert ["in/a.txt"] == place.listed()
        assert not place.tags("in/a.txt")
        assert "cleanup" not in stored[place.partition("in/a.txt")]
        assert "left as it is" in caplog.text

    @pytest.mark.parametrize("action", ["delete", "move"])
    @pytest.mark.parametrize("path", ["in/", "in/a.txt"])
    def test_another_object_under_the_name_of_one_that_was_going_is_read(
        self, place: FilesPlace, action: str, path: str
    ) -> None:
        """As the next one is, when that is done."""
        more = settings_of(place, action)
        place.put("in/a.txt", b"one\n")
        stored = place.read_all(path, **more)
        place.put("in/a.txt", b"another\n")

        assert ["another"] == values(place.run(stored, path, **more))
        assert ("in/a.txt" in place.listed(), stored) == (False, {})

        place.put("in/a.txt", b"third\n")
        assert ["third"] == values(place.run(stored, path, **more))

    def test_a_failing_action_is_tried_again_and_holds_up_nothing(
        self, place: FilesPlace, caplog: pytest.LogCaptureFixture
    ) -> None:
        """New objects are read meanwhile, and in the end the old one goes."""
        place.put("in/a.txt", b"one\n")
        stored: Stored = {}
        place.proxy.fail(Fault("DELETE", "a.txt", times=99, status=403, code="AccessDenied"))

        with caplog.at_level(logging.WARNING):
            assert ["one"] == values(place.run(stored, "in/", **DELETE))
            place.put("in/b.txt", b"two\n")
            assert ["two"] == values(place.run(stored, "in/", **DELETE))

        assert "files.after.commit=delete: It failed for 1 file" in caplog.text
        assert place.address("in/a.txt") in caplog.text
        assert ["in/a.txt"] == place.listed()
        place.proxy.forget()
        assert [] == place.run(stored, "in/", **DELETE)
        assert ([], {}) == (place.listed(), stored)

    def test_what_is_not_a_whole_copy_is_not_followed_by_a_deletion(
        self,
        place: FilesPlace,
        store: Store,
        caplog: pytest.LogCaptureFixture,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        """Its length is compared first."""
        place.put("in/a.txt", b"one\n")
        more, kind = settings_of(place, "move"), type(store)
        whole = kind.head

        def shorter(self: Store, key: str) -> StoredObject:
            found = whole(self, key)
            return replace(found, size=found.size - 1) if key.startswith("done/") else found

        stored: Stored = {}
        with monkeypatch.context() as patched, caplog.at_level(logging.WARNING):
            patched.setattr(kind, "head", shorter)
            assert ["one"] == values(place.run(stored, "in/", **more))
        assert "in/a.txt" in place.listed()
        assert "3 bytes, but should have 4" in caplog.text
        assert "pending" == stored[place.partition("in/a.txt")]["cleanup"]

        assert [] == place.run(stored, "in/", **more)
        assert (["done/a.txt"], {}) == (place.listed(), stored)
