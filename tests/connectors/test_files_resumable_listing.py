"""One listing serves many rounds."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from pathlib import Path
from unittest import mock

import pytest

from connectors.files_steps import Stored
from connectors.tracked_store import FilledStore, Played, entry_of
from headrace.connect import SourceOffset, TaskFailedError
from headrace.connectors.files.candidate import Decision
from headrace.connectors.files.config import FilesConfig
from headrace.connectors.files.connector import FilesConnector
from headrace.connectors.files.local import selection
from headrace.connectors.files.progress import KnownFiles, by_file, whole
from headrace.connectors.files.tracking.asked import Asked
from headrace.connectors.files.tracking.listings import LONGEST_SECONDS, Listings, ResumableListing
from headrace.stores.store import StoredObject
from headrace.testing.task_runs import LocalRun, StoredOffsets
from waiting import until

TWO = {"files_max_objects_per_round": "2"}
HALF: SourceOffset = {"recordCount": 1, "anchor": 3, "skip": 0, "version": "v1", "size": 9}


class CountedStore(FilledStore):
    """Counts its listings, and the keys that all of them have shown."""

    def __init__(self, *keys: str) -> None:
        super().__init__()
        self.lists = 0
        self.keys = 0
        self.put(*keys)

    def list(self, prefix: str = "", start_after: str = "") -> Iterator[StoredObject]:
        """See ``Store``."""
        self.lists += 1
        for key in sorted(self.objects):
            found = self.objects.get(key)
            if found is not None and key.startswith(prefix) and key > start_after:
                self.keys += 1
                yield found


def test_rounds_of_a_store_go_on_where_the_last_one_stopped():
    """The keys that are listed are twice as many as there are, however many rounds it takes."""
    store = CountedStore(*(f"{number:03}" for number in range(100)))

    read = Played(store, **TWO).rounds()

    assert sorted(store.objects) == read
    assert (2, 200) == (store.lists, store.keys)


def test_rounds_on_disk_go_on_where_the_last_one_stopped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """The folder is listed twice: once for all that is there, once to see that nothing came."""
    for number in range(20):
        (tmp_path / f"{number:02}.txt").write_text(f"{number}\n")
    listed = mock.Mock(wraps=selection.list_files)
    monkeypatch.setattr(selection, "list_files", listed)
    props = {"files.path": str(tmp_path), "topic": "t", "files.min.age.ms": "0"}

    found = LocalRun(
        FilesConnector(), {**props, "files.max.objects.per.round": "3"}, {}
    ).until_idle()

    assert [str(number) for number in range(20)] == [each.value for each in found]
    assert 2 == listed.call_count


def test_what_a_round_did_not_read_comes_before_what_is_behind_it():
    """The next one begins again, so that order holds and nothing is left out."""
    played = Played(CountedStore("a", "b", "c", "d", "e"), **TWO)

    assert ["b"] == played.round(but="a")
    assert ["a", "c"] == played.round()
    assert ["d", "e"] == played.round()
    assert [] == played.rounds()


def test_an_old_entry_does_not_say_that_a_new_version_was_read():
    """An object that was replaced and failed is the first one of the next round."""
    played = Played(CountedStore("a", "b", "c", "d"), files_changed="reread", **TWO)
    played.rounds()
    played.store.put("a", "b", "c", "d", version="v2")

    assert ["b"] == played.round(but="a")
    assert ["a", "c"] == played.round()


def test_what_comes_late_is_read_before_the_run_ends():
    """A plan says that nothing is left only behind a listing from the beginning."""
    played = Played(CountedStore("b", "c", "d", "e"), **TWO)
    assert ["b", "c"] == played.round()
    played.store.put("a")

    assert ["d", "e"] == played.round()
    assert ["a"] == played.round()
    assert not played.plan().has_work()


def test_a_decision_of_the_last_round_holds_as_long_as_the_offset_does():
    """Else the object would be read from where it was to go on then."""
    played = Played(CountedStore("b", "c", "d"), **TWO)
    played.round()
    played.stored[entry_of("d")] = played.done("d")

    assert [] == played.round()


def test_what_is_listed_later_is_judged_by_what_is_known_by_then():
    """Each plan has its own offsets."""
    played = Played(CountedStore("a", "b", "c", "d", "e"), **TWO)
    played.round()
    played.stored[entry_of("d")] = played.done("d")

    assert ["c", "e"] == played.round()


def test_behind_a_file_in_ranges_a_round_begins_again():
    """So that the offsets of all ranges become one at once."""
    ranges = {"files_split_bytes": "5", "files_compression": "none"}
    played = Played(CountedStore("a", "b", "c", "d"), **ranges, **TWO)
    played.round()
    assert entry_of("a") not in played.stored

    played.round()

    assert {entry_of("a"), entry_of("b")} <= played.stored.keys()


def test_where_nothing_follows_a_plan_begins_again_at_once(monkeypatch: pytest.MonkeyPatch):
    """An empty plan would end the run, although no one has looked from the beginning."""

    def exhausted(self: Listings, known: KnownFiles) -> ResumableListing:
        found = self.begun(StoredOffsets({}), known)
        deque(found.decisions(), maxlen=0)
        return found

    monkeypatch.setattr(Listings, "going_on", exhausted)

    assert ["a"] == Played(CountedStore("a"), **TWO).round()


def test_a_listing_does_not_go_on_for_ever():
    """What comes late has waited for long enough then."""
    played = Played(CountedStore("b", "c", "d", "e", "f", "g"), **TWO)
    assert ["b", "c"] == played.round()
    played.store.put("a")

    played.now = LONGEST_SECONDS
    assert ["d", "e"] == played.round()
    played.now += 1
    assert ["a", "f"] == played.round()


def test_what_is_missing_is_judged_by_all_rounds_of_a_listing():
    """What the first of them has shown is not missing in the last one, and nothing is before that."""
    played = Played(CountedStore("a", "z"), files_forget_after_ms="0", **TWO)
    played.rounds()
    del played.store.objects["z"]
    played.restart(files_forget_after_ms="0", **TWO)
    played.store.put("b", "c", "d", "e", "f")

    for names in (["b", "c"], ["d", "e"]):
        assert names == played.round()
        assert "z" in played.entries
    played.rounds()

    assert ["a", "b", "c", "d", "e", "f"] == played.entries


def test_what_was_begun_and_is_gone_is_told_at_the_end():
    """Although another round had begun the listing."""
    stored: Stored = {entry_of("e"): HALF}
    played = Played(CountedStore("a", "b", "c", "d", "e", "f"), stored, **TWO)
    played.round()
    del played.store.objects["e"]
    assert ["c", "d"] == played.round()

    with pytest.raises(TaskFailedError, match="vanished before it was read to its end"):
        played.round()


class CleanedStore(CountedStore):
    """Objects can be deleted, after a listing has taken them into its page."""

    def list(self, prefix: str = "", start_after: str = "") -> Iterator[StoredObject]:
        """See ``Store``."""
        self.lists += 1
        page = [self.objects[key] for key in sorted(self.objects)]
        yield from (each for each in page if each.key > start_after)

    def delete(self, key: str, version: str) -> bool:
        """See ``Store``."""
        return self.objects.pop(key, None) is not None


@pytest.mark.parametrize("marker", [{}, {"files_complete_marker": "{name}.done"}])
def test_what_is_deleted_while_a_listing_lasts_is_not_taken_for_new(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch, marker: dict[str, str]
):
    """It is met again where the listing goes on."""
    keys = ("a", "b", "c", "d", "e", "y", "z")
    ends = [f"{key}.done" for key in keys] if marker else []
    store = CleanedStore(*keys, *ends)
    monkeypatch.setattr(FilesConfig, "open_store", lambda *_: store)
    more = TWO | marker | {"files_after_commit": "delete", "files_exclude": "*.done"}
    played = Played(store, **more)
    for key in ("y", "z"):
        played.stored[entry_of(key)] = {**played.done(key), "cleanup": "pending"}

    assert ["a", "b"] == played.round()
    until(lambda: not {"y", "z"} & store.objects.keys(), seconds=10)
    assert ["c", "d"] == played.round()

    assert ["e"] == played.round()
    assert not {entry_of("y"), entry_of("z")} & played.stored.keys()
    assert "waits for its marker" not in caplog.text


def test_what_comes_under_the_name_of_what_was_deleted_is_read_by_the_next_listing(
    monkeypatch: pytest.MonkeyPatch,
):
    """This one cannot tell whether it is there."""
    store = CleanedStore("a", "b", "c", "d", "e", "z")
    monkeypatch.setattr(FilesConfig, "open_store", lambda *_: store)
    played = Played(store, files_after_commit="delete", **TWO)
    played.stored[entry_of("z")] = {**played.done("z"), "cleanup": "pending"}
    played.round()
    until(lambda: "z" not in store.objects, seconds=10)
    played.round()
    store.put("z", version="v2")

    assert ["e"] == played.round()
    assert ["z"] == played.round()


def test_only_what_is_behind_its_place_is_remembered_by_a_listing():
    """Names may be millions; and one of a single plan has met nothing before."""
    done: SourceOffset = {"anchor": 9, "size": 9, "done": True}
    known = by_file({whole("/b"): done})
    asked = Asked(known)
    asked.cleaned(["/c"])
    assert not asked.leaves_out("/c")
    assert asked.get("/b")

    asked.go_on(known)
    asked.cleaned(["/a", "/c"])

    assert [False, True, False] == [asked.leaves_out(each) for each in ("/a", "/c", "/c")]


def test_rounds_do_not_wrap_each_other():
    """A thousand of them, each with one more around it, would cost more and more, and in the end fail."""
    tracked = mock.Mock()
    tracked.decisions.return_value = iter([("a", Decision())])
    listing = ResumableListing(tracked, Asked(by_file({})), began_at=0)

    for _ in range(100_000):
        path, decision = next(iter(listing.decisions()))
        listing.give_back(path, decision)

    assert ["a"] == [path for path, _ in listing.decisions()]


def test_with_a_mark_each_round_begins_there():
    """It says what is passed."""
    store = CountedStore("a", "b", "c", "d")
    played = Played(store, files_tracking="ordered", files_lookback="0", **TWO)
    played.round()
    lists = store.lists

    played.round()

    assert lists + 1 == store.lists


def test_a_marker_that_is_gone_does_not_hold_in_the_next_round():
    """Whoever takes it away is about to write."""
    store = CountedStore("in/a", "in/b", "in/c", "in/d", "in/e", "in/z")
    played = Played(store, files_recursive="true", files_complete_marker="z", **TWO)
    assert ["in/a", "in/b"] == played.round()
    del store.objects["in/z"]

    # The first object behind a full round was decided about with it.
    assert ["in/c"] == played.round()
    store.put("in/z")
    assert ["in/d", "in/e"] == played.rounds()


def test_numbers_prove_nothing_about_a_listing_of_several_plans():
    """One entry that was found is removed, and another one is not found: as many as before."""
    done: SourceOffset = {"anchor": 9, "size": 9, "done": True}
    asked = Asked(by_file({whole("/a"): done, whole("/b"): done}))
    assert asked.get("/a")

    asked.go_on(by_file({whole("/b"): done}))

    assert not asked.found_all
