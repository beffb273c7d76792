"""Files that wait for another one that says they are complete."""

from __future__ import annotations

import logging
from dataclasses import replace
from pathlib import Path

import pytest

from connectors.files_steps import Steps, Stored, names_of
from connectors.test_files_store_selection import OBJECT, ListedStore, decided, selection, stored
from headrace.connect import ConfigError, RetriableError, SourcePartition
from headrace.connectors.files.config import FilesConfig
from headrace.connectors.files.progress import by_file
from headrace.connectors.files.selecting.marker import Marker
from headrace.connectors.files.selecting.markers import NEAR, Nearby
from headrace.stores.errors import StoreUnavailableError
from headrace.stores.store import StoredObject

OWN = "{name}.done"


def named(*keys: str) -> list[StoredObject]:
    """Objects with these keys."""
    return [replace(OBJECT, key=key) for key in keys]


@pytest.mark.parametrize(
    ("text", "path", "where"),
    [
        ("_SUCCESS", "/in/a.csv", "/in/_SUCCESS"),
        ("_SUCCESS", "a.csv", "_SUCCESS"),
        ("{name}.done", "/in/a.csv.gz", "/in/a.csv.gz.done"),
        ("{stem}.done", "in/a.csv", "in/a.done"),
        ("ok-{stem}", "/a", "/ok-a"),
    ],
)
def test_where_a_marker_is(text: str, path: str, where: str) -> None:
    """Beside what it speaks of; and what is there is known to be one."""
    marker = Marker(text=text)

    assert where == marker.of(path)
    assert marker.is_one(where)
    assert not marker.is_one(path)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("in/_SUCCESS", "without a slash"),
        ("{{name}}.done", "Only {name} or {stem}"),
        ("{file}.done", "Only {name} or {stem}"),
        ("{stem}-{stem}", "only once"),
        ("{name}", "Every name"),
        ("", "non-empty"),
    ],
)
def test_markers_that_cannot_be(text: str, words: str) -> None:
    """Are refused with what would do."""
    with pytest.raises(ConfigError, match=words):
        FilesConfig.parse({"files.path": "/x", "topic": "t", "files.complete.marker": text})


@pytest.mark.parametrize(("text", "marker"), [("_OK", "_OK"), (OWN, "a.txt.done")])
def test_on_disk_a_file_waits_for_its_marker(
    tmp_path: Path, text: str, marker: str, caplog: pytest.LogCaptureFixture
) -> None:
    """It is told once, and no plan is asked for because of it; the marker itself is not read."""
    (tmp_path / "a.txt").write_text("1\n")
    steps = Steps(tmp_path, files_complete_marker=text, files_format="lines")
    with caplog.at_level(logging.WARNING):
        plans = [steps.plan(), steps.plan()]
    assert [False, False] == [each.has_work() for each in plans]
    assert plans[0].ask_again_after is None
    assert 1 == caplog.text.count(f"waits for its marker {marker}")

    (tmp_path / marker).touch()

    assert ["a.txt"] == names_of(steps.plan())


def test_a_folders_marker_is_told_once_for_all(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """And does not speak of the folders below."""
    (tmp_path / "in").mkdir()
    for name in ("a.txt", "b.txt", "in/c.txt"):
        (tmp_path / name).write_text("1\n")
    (tmp_path / "in" / "_OK").touch()
    steps = Steps(tmp_path, files_complete_marker="_OK", files_recursive="true")

    with caplog.at_level(logging.WARNING):
        assert ["c.txt"] == names_of(steps.plan())

    assert [f"{tmp_path}/: What is new here waits for its marker _OK (files.complete.marker)."] == [
        record.getMessage() for record in caplog.records
    ]


def test_what_is_begun_needs_no_marker(tmp_path: Path) -> None:
    """Nor what a person has given an offset."""
    path = tmp_path / "a.txt"
    path.write_text("1\n2\n")
    known: Stored = {SourcePartition(filename=str(path)): {"recordCount": 1, "anchor": 2}}

    assert ["a.txt"] == names_of(Steps(tmp_path, known, files_complete_marker=OWN).plan())


def test_explain_tells_what_is_waited_for(tmp_path: Path) -> None:
    """And of a marker, that it is one."""
    for name in ("a.txt", "b.txt", "b.txt.done"):
        (tmp_path / name).write_text("1\n")

    rows = Steps(tmp_path, files_complete_marker=OWN).explained()

    assert "waits for its marker a.txt.done" in str(rows["a.txt"].reason)
    assert "It is a marker" in str(rows["b.txt.done"].reason)
    assert [0] == list(rows["b.txt"].slots)


def test_in_a_store_a_folder_is_asked_for_once_in_each_plan() -> None:
    """Because its marker may sort behind all its objects, or in another page."""
    keys = [f"in/{number:03}.txt" for number in range(3 * NEAR)]
    store = ListedStore(*named(*keys))
    chosen = selection(store, files_complete_marker="z", files_recursive="true")
    assert not any(each.pieces for _, each in chosen.decisions({}))
    assert ["list ", "head in/z"] == store.asked

    store.objects = (*store.objects, *named("in/z"))

    found = dict(chosen.decisions({}))
    assert len(keys) == sum(bool(each.pieces) for each in found.values())
    assert "s3://b/in/z" not in found
    assert ["list ", "head in/z"] == store.asked[2:]


def test_in_a_store_a_marker_beside_its_object_is_not_asked_for() -> None:
    """One that is not there costs a question, and one that is far away as well."""
    far = [f"a.txt-{number:03}.tmp" for number in range(2 * NEAR)]
    store = ListedStore(*named("a.txt", *far, "a.txt.done", "b.txt", "b.txt.done", "c.txt"))
    store.objects = tuple(sorted(store.objects, key=lambda each: getattr(each, "key", "")))
    chosen = selection(store, files_complete_marker=OWN)

    found = {path: bool(each.pieces) for path, each in chosen.decisions({})}

    assert {"s3://b/a.txt": True, "s3://b/b.txt": True, "s3://b/c.txt": False} == found
    assert ["list ", "head a.txt.done", "head c.txt.done"] == store.asked


def test_only_some_keys_are_remembered() -> None:
    """However long the listing is."""
    nearby = Nearby()
    objects = named(*map(str, range(10 * NEAR)))
    held = set[int]()

    for each in nearby.through(objects):
        held.add(sum(str(number) in nearby for number in range(10 * NEAR)))
        assert each.key in nearby

    assert max(held) == 2 * NEAR


def test_a_marker_that_sorts_before_its_object_is_seen_as_well() -> None:
    """As far as it lies beside it."""
    store = ListedStore(*named("a.done", "a.txt"))

    chosen = selection(store, files_complete_marker="{stem}.done")

    assert ["s3://b/a.txt"] == [path for path, each in chosen.decisions({}) if each.pieces]
    assert ["list "] == store.asked


def test_in_a_store_what_is_begun_is_not_asked_for() -> None:
    """Nor what was read to its end, whatever became of its marker."""
    store = ListedStore(OBJECT)
    chosen = selection(store, files_complete_marker=OWN)

    (_, begun) = next(chosen.decisions(by_file(stored())))
    (_, done) = next(chosen.decisions(by_file(stored(done=True))))

    assert (True, False) == (bool(begun.pieces), bool(done.pieces))
    assert not [each for each in store.asked if each.startswith("head")]


def test_what_waits_holds_back_a_mark() -> None:
    """It is decided about, and not left out: nothing may count it as passed."""
    (decision,) = decided(OBJECT, files_complete_marker=OWN).values()

    assert (True, None) == (decision.waits, decision.again_after)
    assert "s3://b/a.jsonl.done" == decision.marker


def test_a_store_that_is_away_is_no_missing_marker() -> None:
    """The plan fails and is made again."""

    class Away(ListedStore):
        def head(self, key: str) -> StoredObject:
            """See ``Store``."""
            raise StoreUnavailableError("busy")

    chosen = selection(Away(OBJECT), files_complete_marker=OWN)

    with pytest.raises(RetriableError, match="busy"):
        list(chosen.decisions({}))
