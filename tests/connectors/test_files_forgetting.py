"""`files.tracking=object`: one entry for each file that exists, and none for those that are gone."""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from connectors.files_steps import Stored
from connectors.tracked_store import FilledStore, Played, entry_of
from headrace.connect import SourcePartition
from headrace.connect.connector import Plan, PlanRequest
from headrace.connectors.files.connector import FilesConnector
from headrace.connectors.files.local import listing
from headrace.connectors.files.tracking.missing import Missing, Recalled
from headrace.stores.store import StoredObject
from headrace.testing.task_runs import LocalRun, StoredOffsets

HOUR = {"files_forget_after_ms": "3600000"}
# After so many seconds a plan compares again.
PAUSE = 60.0
AT_ONCE = {"files_forget_after_ms": "0"}


@pytest.fixture
def store() -> FilledStore:
    """Three objects."""
    made = FilledStore()
    made.put("a", "b", "c")
    return made


# ------------------------------------------------------------------ in a store


def test_an_object_that_stays_away_is_forgotten(store: FilledStore):
    """When every listing for so long has not shown it."""
    played = Played(store, **HOUR)
    played.rounds()
    del store.objects["b"]

    for played.now in (PAUSE, 3600.0, PAUSE + 3599.0):
        played.rounds()
        assert ["a", "b", "c"] == played.entries
    played.now = PAUSE + 3600.0
    played.rounds()

    assert ["a", "c"] == played.entries
    store.put("b")
    assert ["b"] == played.rounds(), "it is a new one"


def test_an_object_that_comes_back_is_not_read_again(store: FilledStore):
    """And its time begins again, also when one listing alone has shown it."""
    played = Played(store, **HOUR)
    played.rounds()
    away = store.objects.pop("b")
    played.now = PAUSE
    played.rounds()
    played.now = 3000.0
    played.rounds()
    store.objects["b"] = away
    played.now = 3001.0
    assert [] == played.rounds()
    del store.objects["b"]

    for played.now in (3100.0, PAUSE + 3600.0, 6600.0):
        played.rounds()
        assert ["a", "b", "c"] == played.entries
    played.now = 6700.0
    played.rounds()
    assert ["a", "c"] == played.entries


def test_without_a_time_the_first_listing_counts(store: FilledStore):
    """Of each plan."""
    played = Played(store, **AT_ONCE)
    played.rounds()
    for key in "ab":
        del store.objects[key]

    played.rounds()

    assert ["c"] == played.entries


def test_a_folder_that_shows_nothing_forgets_nothing_for_a_day(store: FilledStore):
    """It may be away: what was forgotten then would be read again."""
    store.put("in/d", "in/e")
    played = Played(store, **AT_ONCE, files_recursive="true")
    played.rounds()
    away = {key: store.objects.pop(key) for key in ("a", "in/d", "in/e")}
    played.rounds()
    assert ["b", "c", "in/d", "in/e"] == played.entries
    store.objects["in/d"] = away["in/d"]
    assert [] == played.rounds()
    assert ["b", "c", "in/d"] == played.entries
    del store.objects["in/d"]
    played.rounds()

    played.now = 24 * 3600.0
    played.rounds()

    assert ["b", "c"] == played.entries


def test_an_emptied_folder_is_normal_where_files_are_taken_away(store: FilledStore):
    """By headrace itself, or by somebody who was faster."""
    played = Played(store, **AT_ONCE)
    played.rounds()
    store.objects.clear()

    played.restart(**AT_ONCE, files_after_commit="delete").rounds()

    assert [] == played.entries


def test_a_full_round_forgets_nothing(store: FilledStore):
    """It has not listed everything."""
    played = Played(store, **AT_ONCE, files_max_objects_per_round="1")
    played.stored[entry_of("z")] = {"recordCount": 1, "done": True, "version": "v1", "size": 9}

    assert [["a"], ["b"]] == [played.round(), played.round()]
    assert ["a", "b", "z"] == played.entries
    played.rounds()
    assert ["a", "b", "c"] == played.entries


@pytest.mark.parametrize(
    "entry",
    [
        {"recordCount": 1, "anchor": 3, "skip": 0},
        {"recordCount": 1, "quarantined": "It is damaged.", "anchor": 3},
        {"recordCount": 1, "done": True, "cleanup": "pending"},
        {"recordCount": 0},
    ],
)
def test_only_what_is_done_is_forgotten(store: FilledStore, entry: dict[str, str | int | bool]):
    """Of the others, somebody has to hear."""
    played = Played(store, **AT_ONCE, files_missing="ignore")
    played.stored[entry_of("z")] = dict(entry)

    played.rounds()

    assert "z" in played.entries


@pytest.mark.parametrize(
    "more",
    [
        {"files_path": "s3://b/in/"},
        {"files_path": "s3://b/*.jsonl"},
        {"files_start_after": "x"},
        {"files_name_regex": "^in/"},
    ],
)
def test_what_the_settings_do_not_select_now_is_kept(store: FilledStore, more: dict[str, str]):
    """They may select it again tomorrow."""
    played = Played(store)
    played.rounds()
    store.objects.clear()

    played.restart(**AT_ONCE, **more).rounds()

    assert ["a", "b", "c"] == played.entries


def test_what_is_there_and_left_out_is_kept(store: FilledStore):
    """By its time, or as a name that is excluded."""
    store.put("d.tmp", "e", at=0)
    played = Played(store, files_exclude="")
    played.rounds()

    played.restart(**AT_ONCE, files_modified_since="1970-01-01T00:00:00.001").rounds()

    assert ["a", "b", "c", "d.tmp", "e"] == played.entries


def test_a_store_that_has_what_it_does_not_list_is_not_believed(store: FilledStore):
    """It is asked for a few."""

    class Hiding(FilledStore):
        def list(self, *_: object, **__: object) -> Iterator[StoredObject]:
            yield self.objects["a"]

    played = Played(store)
    played.rounds()
    hiding = Hiding()
    hiding.objects = store.objects
    played.store = hiding

    played.restart(**AT_ONCE).rounds()

    assert ["a", "b", "c"] == played.entries
    assert 0 < hiding.heads < 10


def test_many_are_forgotten_by_and_by(store: FilledStore, monkeypatch: pytest.MonkeyPatch):
    """So that a transaction stays small."""
    monkeypatch.setattr("headrace.connectors.files.tracking.retention.MOST", 2)
    store.put("d")
    played = Played(store, **AT_ONCE)
    played.rounds()
    for key in "abc":
        del store.objects[key]

    assert [2, 1, 0] == [len(played.plan().offsets) for _ in range(3)]


def test_it_is_not_looked_for_all_the_time(store: FilledStore):
    """A plan that only forgets is followed by another at once, which would find the next one, and so on."""
    store.put(*"defgh")
    played = Played(store, files_forget_after_ms="100000")
    played.rounds()
    for second, key in enumerate("defgh"):
        del store.objects[key]
        played.now = 61.0 + second
        played.plan()

    forgot = list[int]()
    for second in range(150, 400):
        played.now = float(second)
        forgot.append(list(played.plan().offsets.values()).count(None))

    assert 5 == sum(forgot)
    assert 2 >= sum(map(bool, forgot))


# ------------------------------------------------------------------ on local disk


class OnDisk:
    """Runs over a folder, at a time that the test moves."""

    def __init__(self, path: Path | str, **more: str) -> None:
        self.stored: Stored = {}
        self.now = 0.0
        named = {key.replace("_", "."): value for key, value in more.items()}
        self.props = {"files.path": str(path), "topic": "t", "files.min.age.ms": "0", **named}
        self.connector = FilesConnector(ticks=lambda: self.now)
        self.connector.start(self.props)

    def run(self) -> list[object]:
        """What a run reads, as one that goes on."""
        again = LocalRun(self.connector, self.props, self.stored)
        self.connector.start = lambda _: None  # type: ignore[method-assign]
        return [each.value for each in again.until_idle()]

    def plan(self) -> Plan:
        """The next plan."""
        return self.connector.plan(PlanRequest(slots=1, offsets=StoredOffsets(self.stored)))

    def names(self) -> list[str]:
        """The names of the files that have entries."""
        return sorted(Path(str(each["filename"])).name for each in self.stored)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with two files."""
    made = tmp_path / "in"
    made.mkdir()
    for name in "ab":
        (made / f"{name}.txt").write_text(f"{name}\n")
    return made


def test_a_file_that_is_removed_is_forgotten(folder: Path):
    """After the time."""
    disk = OnDisk(folder, **HOUR)
    disk.run()
    (folder / "a.txt").unlink()
    for disk.now in (PAUSE, 3600.0):
        disk.run()
        assert ["a.txt", "b.txt"] == disk.names()
    disk.now += PAUSE

    disk.run()

    assert ["b.txt"] == disk.names()


def test_a_disk_that_is_not_mounted_for_a_time_is_not_read_again(folder: Path):
    """Its mount point is an empty folder."""
    disk = OnDisk(folder, **HOUR)
    assert ["a", "b"] == disk.run()
    away = folder.rename(folder.parent / "away")
    folder.mkdir()
    for disk.now in (PAUSE, 1800.0, PAUSE + 3599.0):
        assert [] == disk.run()
    folder.rmdir()
    away.rename(folder)

    disk.now = PAUSE + 3600.0
    assert [] == disk.run()
    assert ["a.txt", "b.txt"] == disk.names()


def test_a_folder_that_vanishes_while_it_is_listed_forgets_nothing(
    folder: Path, monkeypatch: pytest.MonkeyPatch
):
    """Nobody has seen what is in it."""
    below = folder / "below"
    below.mkdir()
    (below / "c.txt").write_text("c\n")
    disk = OnDisk(folder, **AT_ONCE, files_recursive="true")
    disk.run()
    scandir = listing.os.scandir

    def vanish(path: str) -> object:
        if path == str(below) and below.exists():
            below.rename(folder.parent / "away")
        return scandir(path)

    monkeypatch.setattr(listing.os, "scandir", vanish)
    assert {} == disk.plan().offsets
    monkeypatch.undo()
    below.mkdir()
    (below / "d.txt").write_text("d\n")
    assert {SourcePartition(filename=str(below / "c.txt")): None} == disk.plan().offsets


def test_behind_links_that_lead_nowhere_nothing_is_forgotten(folder: Path):
    """The name of such a file is there; what is in such a folder no one can tell."""
    mounted = folder.rename(folder.parent / "mounted")
    folder.mkdir()
    for below in ("c", "d"):
        (folder / below).mkdir()
        (folder / below / "x.txt").write_text("x\n")
        (folder / below / "a.txt").symlink_to(mounted / "a.txt")
    disk = OnDisk(folder / "*" / "*", **AT_ONCE)
    disk.run()
    (mounted / "a.txt").unlink()
    (folder / "c" / "x.txt").unlink()
    disk.run()
    assert ["a.txt", "a.txt", "x.txt"] == disk.names()

    (folder / "d").rename(folder.parent / "away")
    (folder / "d").symlink_to(folder.parent / "nowhere")
    disk.run()

    assert ["a.txt", "a.txt", "x.txt"] == disk.names()


def test_a_file_that_the_settings_name_is_not_forgotten(folder: Path):
    """Only its entry tells that it was there once."""
    path = folder / "a.txt"
    (folder / "c.txt").write_text("c\n")
    disk = OnDisk(f"{path},{folder}", **AT_ONCE)
    disk.run()
    path.unlink()
    (folder / "b.txt").unlink()

    assert [] == disk.run()
    assert ["a.txt", "c.txt"] == disk.names()


def test_without_a_time_a_disk_that_is_not_mounted_is_not_read_again(folder: Path):
    """Its mount point is an empty folder."""
    disk = OnDisk(folder, **AT_ONCE)
    assert ["a", "b"] == disk.run()
    away = folder.rename(folder.parent / "away")
    folder.mkdir()
    assert [] == disk.run()
    folder.rmdir()
    away.rename(folder)

    assert [] == disk.run()


def test_a_file_that_is_not_listed_but_there_is_kept(folder: Path, monkeypatch: pytest.MonkeyPatch):
    """A look at it tells."""
    disk = OnDisk(folder, **AT_ONCE)
    disk.run()
    monkeypatch.setattr("headrace.connectors.files.local.selection.list_files", lambda *_, **__: [])

    assert None not in disk.plan().offsets.values()


# ------------------------------------------------------------------ what was missing when


@given(
    rounds=st.lists(st.tuples(st.sets(st.integers(0, 9)), st.booleans()), max_size=12),
    seconds=st.integers(0, 6),
)
def test_what_has_been_missing_is_what_no_listing_has_shown(
    rounds: list[tuple[set[int], bool]], seconds: int
):
    """Since the first comparison that missed it."""
    known = [str(number) for number in range(10)]
    missing, since = Missing(), dict[str, int]()
    for now, (numbers, compares) in enumerate(rounds):
        shown = {str(number) for number in numbers}
        seen = array("q", map(hash, shown))
        since = {path: at for path, at in since.items() if path not in shown}
        missing.shown(seen)
        if compares:
            since = {path: since.get(path, now) for path in known if path not in shown}
            missing.compare(known, seen, now=now)

        due = [path for path in known if path in since and now - since[path] >= seconds]
        assert due == missing.missed(known, seconds=seconds, now=now)


def test_what_is_recalled_counts_for_half_at_most():
    """Each of what a note says and of what passed since then; of what is there nothing is recalled."""
    missing, known = Missing(), ["a", "b", "c"]
    missing.compare(known, array("q", [hash("c")]), now=10)
    missing.recall([])
    earlier = {"c": (9.0, 9.0), "a": (3.0, 9.0), "b": (0.0, 99.0)}
    missing.recall(
        Recalled(path=path, earlier=before, between=between)
        for path, (before, between) in earlier.items()
    )
    assert ["a"] == missing.missed(known, seconds=6, now=10)
    assert [("b", 100.0), ("a", 13.0)] == list(missing.observed(["b", "a"], now=11))
    missing.let_be(["a"])

    assert ["b"] == missing.missed(known, seconds=6, now=13)


def test_what_is_noted_is_not_to_be_noted_again():
    """Until it was there again."""
    missing, known, nothing = Missing(), ["a", "b"], array("q")
    missing.compare(known, nothing, now=0)
    assert [] == missing.unnoted(known, seconds=5, now=4)
    missing.noted(["a"])
    missing.compare(known, nothing, now=5)
    assert ["b"] == missing.unnoted(known, seconds=5, now=5)
    missing.shown(array("q", [hash("a")]))
    missing.compare(known, nothing, now=6)

    assert ["a", "b"] == missing.unnoted(known, seconds=0, now=6)


def test_what_is_let_be_is_not_named_until_it_was_there_again():
    """Then it is like any other."""
    missing, known, nothing = Missing(), ["a", "b"], array("q")
    missing.compare(known, nothing, now=0)
    missing.let_be(["a"])
    missing.compare(known, nothing, now=1)
    assert ["b"] == missing.missed(known, seconds=0, now=1)
    missing.shown(array("q", [hash("a")]))
    missing.compare(known, nothing, now=2)

    assert ["a", "b"] == missing.missed(known, seconds=0, now=2)
