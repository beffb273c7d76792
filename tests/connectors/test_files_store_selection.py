"""Plans over a store, from a listing and offsets alone."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import cast

import pytest

from headrace.connect import (
    ConfigError,
    RetriableError,
    SourceOffset,
    SourcePartition,
    TaskFailedError,
)
from headrace.connect.partition import OffsetValue
from headrace.connectors.files.candidate import Decision
from headrace.connectors.files.config import FilesConfig
from headrace.connectors.files.details import SplitDetails
from headrace.connectors.files.progress import by_file
from headrace.connectors.files.stored.selection import StoreSelection
from headrace.stores.errors import (
    KeyNotRepresentableError,
    ObjectGoneError,
    StoreUnavailableError,
)
from headrace.stores.store import Store, StoredObject

PATH = "s3://b/a.jsonl"
OBJECT = StoredObject(key="a.jsonl", size=100, version="v1", modified_ms=0)


class ListedStore:
    """A store that can be listed and asked, and notes what it was asked."""

    name = "s3://b"

    def __init__(self, *objects: StoredObject | Exception) -> None:
        self.objects = objects
        self.asked: list[str] = []

    def list(self, prefix: str = "", start_after: str = "") -> Iterator[StoredObject]:
        """See ``Store``."""
        self.asked.append(f"list {prefix}{start_after}")
        for each in self.objects:
            if isinstance(each, Exception):
                raise each
            elif each.key.startswith(prefix):
                yield each

    def head(self, key: str) -> StoredObject:
        """See ``Store``."""
        self.asked.append(f"head {key}")
        for each in self.objects:
            if isinstance(each, StoredObject) and each.key == key:
                return each
        raise ObjectGoneError(self.name, key)


def selection(store: ListedStore, path: str = "s3://b/", **more: str) -> StoreSelection:
    """The selection of *path* in *store*."""
    props = {key.replace("_", "."): text for key, text in more.items()}
    config = FilesConfig.parse({"files.path": path, "topic": "t", **props})
    assert config.root
    return StoreSelection(config, config.root, cast("Store", store), tell=lambda _path, _told: None)


def decided(
    *objects: StoredObject | Exception,
    stored: dict[SourcePartition, SourceOffset] | None = None,
    **more: str,
) -> dict[str, Decision]:
    """What is decided about each object."""
    chosen = selection(ListedStore(*objects), **more)
    return dict(chosen.decisions(by_file(stored or {})))


def details_of(decision: Decision) -> SplitDetails:
    """What the task is told of its only piece."""
    (piece,) = decision.pieces
    return SplitDetails.of(piece.split.details)


def stored(**offset: OffsetValue) -> dict[SourcePartition, SourceOffset]:
    """An offset of the object, under its version."""
    known = {
        "version": "v1",
        "size": 100,
        "format": "jsonl",
        "recordCount": 1,
        "skip": 0,
        "anchor": 9,
    }
    return {SourcePartition(filename=PATH): {**known, **offset}}


def test_an_object_is_ready_when_it_is_listed():
    """No age counts, and nothing of it is waited for."""
    decision = decided(OBJECT)[PATH]
    details = details_of(decision)

    assert (True, True, None, None) == (details.settled, details.tail, details.stop, details.limit)
    assert ("v1", 100) == (details.version, details.size)
    assert decision.again_after is None


def test_a_half_read_object_goes_on_where_it_stopped():
    """With the offset that the store of offsets has."""
    (piece,) = decided(OBJECT, stored=stored())[PATH].pieces

    assert 9 == (piece.split.offset or {})["anchor"]


def test_what_is_done_is_left_alone():
    """As long as its version is the same."""
    assert not decided(OBJECT, stored=stored(done=True))[PATH].pieces


@pytest.mark.parametrize("done", [True, False])
@pytest.mark.parametrize("size", [50, 100, 200])
def test_another_version_is_another_object(done: bool, size: int):  # noqa: FBT001
    """Also one that is longer: objects do not grow."""
    changed = replace(OBJECT, version="v2", size=size)
    known = stored(done=True) if done else stored()

    with pytest.raises(TaskFailedError, match=f"{PATH}: The object was replaced"):
        decided(changed, stored=known)
    assert not decided(changed, stored=known, files_changed="ignore")[PATH].pieces
    again = decided(changed, stored=known, files_changed="reread")[PATH]
    assert ("v2", None) == (details_of(again).version, again.pieces[0].split.offset)


def test_rereading_removes_ranges():
    """Those of the version before."""
    piece = SourcePartition({"filename": PATH, "from": 0, "to": 50})
    known = {piece: next(iter(stored().values()))}

    again = decided(replace(OBJECT, version="v2"), stored=known, files_changed="reread")[PATH]

    assert {piece: None} == again.offsets


def test_a_change_of_the_format_is_refused():
    """As on local disk."""
    with pytest.raises(TaskFailedError, match="was read as csv"):
        decided(OBJECT, stored=stored(format="csv"))


def test_splitting_cuts_plain_lines_only_where_they_are_told_to_be_plain():
    """By the settings; a name that says otherwise is not asked."""
    pieces = decided(OBJECT, files_split_bytes="40", files_compression="none")[PATH].pieces

    assert [(0, 40), (40, 80), (80, 100)] == [
        (piece.split.partition["from"], piece.split.partition["to"]) for piece in pieces
    ]
    with pytest.raises(ConfigError, match=r"files\.compression=none"):
        decided(OBJECT, files_split_bytes="40")


@pytest.mark.parametrize(("key", "pieces"), [("a.avro", 3), ("a.parquet", 3), ("a.avro.gz", 1)])
def test_splitting_cuts_formats_that_pack_themselves(key: str, pieces: int):
    """Their names tell it; nothing is asked of the store, and a range has no end but its last block's."""
    listed, form = replace(OBJECT, key=key), key.split(".")[1]

    decision = decided(listed, files_split_bytes="40", files_format=form)[f"s3://b/{key}"]

    assert pieces == len(decision.pieces)
    details = [SplitDetails.of(piece.split.details) for piece in decision.pieces]
    assert {None} == {each.limit for each in details}
    assert {pieces > 1} == {each.seek for each in details}


def test_an_extension_that_tells_nothing_is_told():
    """As on local disk; with the address."""
    with pytest.raises(TaskFailedError, match="s3://b/README: The extension"):
        decided(replace(OBJECT, key="README", size=0))


def test_a_key_that_cannot_be_named_is_an_error_and_left_out_by_no_one():
    """The adapter's error, with the key."""
    error = KeyNotRepresentableError("s3://b", "odd", "It cannot be named.")

    with pytest.raises(KeyNotRepresentableError, match="'odd'"):
        decided(OBJECT, error)


def test_a_listing_that_breaks_off_is_no_shorter_one():
    """The plan fails and is made again."""
    with pytest.raises(RetriableError, match="busy"):
        decided(OBJECT, StoreUnavailableError("busy"))


def test_what_is_lost_is_asked_of_this_store_only():
    """Paths of other places are not lost here."""
    store = ListedStore(OBJECT)
    chosen = selection(store, path="s3://b/other/")

    assert [False, True, False, False] == [
        chosen.has_lost(path) for path in (PATH, "s3://b/gone", "s3://c/gone", "/gone")
    ]
    assert ["head a.jsonl", "head gone"] == store.asked


@pytest.mark.parametrize("changed", ["fail", "reread", "ignore"])
@pytest.mark.parametrize("done", [True, False])
def test_another_version_of_an_object_of_which_nothing_was_sent_begins_again(
    changed: str,
    done: bool,  # noqa: FBT001
):
    """A header alone, or an empty object: there is nothing to go on from."""
    known = stored(recordCount=0, done=done)

    decision = decided(replace(OBJECT, version="v2"), stored=known, files_changed=changed)[PATH]

    (piece,) = decision.pieces
    assert (None, None) == (piece.split.offset, decision.told)


def unmatched(*listings: list[StoredObject], stored: dict[SourcePartition, SourceOffset]) -> int:
    """How often it is told in one run that nothing is selected, as a listing after the other is made."""
    told, config = list[str](), FilesConfig.parse({"files.path": "s3://b/", "topic": "t"})
    assert config.root
    store = ListedStore()
    chosen = StoreSelection(
        config, config.root, cast("Store", store), tell=lambda _path, text: told.append(text)
    )
    for objects in listings:
        store.objects = tuple(objects)
        list(chosen.decisions(by_file(stored)))
    return len(told)


def test_that_nothing_is_selected_is_told_where_nothing_ever_was():
    """What was read, and deleted or moved then, was there."""
    assert 1 == unmatched([], stored={})
    assert 0 == unmatched([OBJECT], [], stored={})
    assert 0 == unmatched([], stored=stored())


@pytest.mark.parametrize(
    ("path", "reason"),
    [
        ("s3://b/in/.x", "matches _tmp"),
        ("s3://b/in/*/*.jsonl", "A name in it begins with a dot"),
        ("s3://b/*.jsonl", "No glob of files.path matches it"),
        ("s3://b/in/.x/", "matches _tmp"),
        ("s3://b/*.jsonl,s3://b/in/.x/", "matches _tmp"),
    ],
)
def test_of_an_object_that_is_not_selected_the_true_reason_is_told(path: str, reason: str):
    """One, and of several entries that of the one that comes nearest."""
    store, told = ListedStore(replace(OBJECT, key="in/.x/_tmp.jsonl")), dict[str, str]()

    chosen = selection(store, path=path, files_exclude="_tmp*")
    list(chosen.decisions({}, left_out=told.__setitem__))

    assert reason in "".join(told.values())
