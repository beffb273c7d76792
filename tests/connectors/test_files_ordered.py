"""`files.tracking=ordered`: a mark, and entries for what sorts behind it."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from functools import partial

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from connectors.files_steps import Stored
from connectors.tracked_store import MARK_OF_STORE, ROOT, FilledStore, Played, entry_of
from headrace.connect import SourcePartition
from headrace.connectors.files.candidate import Decision
from headrace.connectors.files.config import FilesConfig
from headrace.connectors.files.progress import by_file
from headrace.connectors.files.tracking.asked import Asked
from headrace.connectors.files.tracking.below_mark import BelowMark
from headrace.connectors.files.tracking.folding import fold
from headrace.connectors.files.tracking.marks import NO_MARK, Mark
from headrace.connectors.files.tracking.ordering import OrderedTracker, Ordering
from headrace.stores.store import StoredObject
from project.sampling import drawn

ORDERED = {"files_tracking": "ordered"}
NO_LOOKBACK = {**ORDERED, "files_lookback": "0"}


@pytest.fixture
def store() -> FilledStore:
    """An empty one."""
    return FilledStore()


def names(*numbers: int) -> list[str]:
    """Keys that rise with their numbers."""
    return [f"{number:04}" for number in numbers]


# ------------------------------------------------------------------ how far the mark goes


def test_what_is_done_becomes_one_mark(store: FilledStore):
    """Whatever it was that was read."""
    store.put(*names(*range(50)))
    played = Played(store, **NO_LOOKBACK)

    assert names(*range(50)) == played.rounds()
    assert ("0049", []) == (played.mark, played.entries)
    assert [] == played.rounds()


def test_the_last_ones_keep_their_entries(store: FilledStore):
    """As many as the look-back says."""
    store.put(*names(*range(50)))
    played = Played(store, **ORDERED, files_lookback="3")

    played.rounds()

    assert ("0046", names(47, 48, 49)) == (played.mark, played.entries)


def test_a_late_object_within_the_look_back_is_found_across_restarts(store: FilledStore):
    """Its name sorts between those that have been read."""
    store.put(*names(*range(0, 50, 2)))
    played = Played(store, **ORDERED, files_lookback="3")
    played.rounds()
    store.put("0045", at=9)

    assert ["0045"] == played.restart(**ORDERED, files_lookback="3").rounds()
    assert [] == played.rounds()


@pytest.mark.parametrize(
    "entry",
    [
        {"recordCount": 1, "anchor": 3, "skip": 0, "version": "v1", "size": 9, "format": "jsonl"},
        {
            "quarantined": "It is damaged.",
            "recordCount": 1,
            "anchor": 3,
            "version": "v1",
            "size": 9,
        },
        None,
    ],
)
def test_what_is_not_done_stops_the_mark(store: FilledStore, entry: dict[str, str | int] | None):
    """Half read, in quarantine, or not read yet; what was read behind it keeps its entry."""
    store.put(*names(1, 2, 3, 4))
    played = Played(store, **NO_LOOKBACK)
    played.round(but="0003")
    if entry is not None:
        played.stored[entry_of("0003")] = dict(entry)

    played.round(but="0003")

    assert "0002" == played.mark
    assert {"0004"} <= set(played.entries) <= {"0003", "0004"}


def test_ranges_stop_the_mark(store: FilledStore):
    """They are not done before they have become one entry."""
    store.put(*names(1, 2))
    played = Played(store, **NO_LOOKBACK, files_split_bytes="5", files_compression="none")
    plan = played.plan()
    first = next(each for share in plan.shares for each in share)
    played.stored[first.partition] = {**played.done("0001"), "anchor": 5}
    played.stored[entry_of("0002")] = played.done("0002")

    played.plan()

    assert "" == played.mark


def test_what_waits_for_its_marker_stops_the_mark(store: FilledStore):
    """It will be read."""
    store.put("0001", "0001.done", "0002", "0003", "0003.done")
    played = Played(store, **NO_LOOKBACK, files_complete_marker="{name}.done")

    assert ["0001", "0003"] == played.rounds()
    assert "0001" == played.mark
    store.put("0002.done")
    assert ["0002"] == played.rounds()
    assert "0003" == played.mark


def test_what_is_not_selected_does_not_stop_it(store: FilledStore):
    """Neither by its name nor by its time."""
    store.put("0001", "0002.tmp", "0004")
    store.put("0003", at=0)
    played = Played(store, **NO_LOOKBACK, files_modified_since="1970-01-01T00:00:00.001")

    assert ["0001", "0004"] == played.rounds()
    assert "0004" == played.mark


def test_a_full_round_stops_it_where_it_has_stopped_listing(
    store: FilledStore, monkeypatch: pytest.MonkeyPatch
):
    """What was not listed may not be read."""
    monkeypatch.setattr("headrace.connectors.files.tracking.ordering._PROOF", 1)
    store.put(*names(*range(6)))
    played = Played(store, **NO_LOOKBACK, files_max_objects_per_round="2")
    played.stored[entry_of("0004")] = played.done("0004")

    marks = [(played.round(), played.mark) for _ in range(4)]

    assert [
        (names(0, 1), ""),
        (names(2, 3), "0001"),
        (names(5), "0004"),
        ([], "0005"),
    ] == marks


def test_a_store_without_order_is_passed_only_where_all_of_it_was_listed(
    monkeypatch: pytest.MonkeyPatch,
):
    """A full round has not seen what comes before."""

    class Disordered(FilledStore):
        def list(self, *_: object, **__: object) -> Iterator[StoredObject]:
            yield from self.objects.values()

    monkeypatch.setattr("headrace.connectors.files.tracking.ordering._PROOF", 1)
    other = Disordered()
    other.put("0009", "0005", "0001", "0003")
    played = Played(other, **NO_LOOKBACK, files_max_objects_per_round="1")
    played.stored[entry_of("0003")] = played.done("0003")

    assert (["0009"], "") == (played.round(), played.mark)
    assert (["0005"], "") == (played.round(), played.mark)
    assert (["0001"], "") == (played.round(), played.mark)
    assert ([], "0009") == (played.round(), played.mark)


def test_an_order_that_was_seen_for_a_moment_is_no_order(store: FilledStore):
    """In rounds of one object most listings rise."""
    store.put(*names(*range(30)))
    played = Played(store, **NO_LOOKBACK, files_max_objects_per_round="1")

    assert {""} == {played.mark for _ in range(29) if played.round()}
    played.rounds()
    assert "0029" == played.mark


def test_many_names_that_rise_are_an_order(store: FilledStore):
    """Then a long way to go does not keep entries for ever."""
    store.put(*names(*range(2000)))
    played = Played(store, **NO_LOOKBACK, files_max_objects_per_round="400")

    marks = [(len(played.round()), played.mark) for _ in range(4)]

    assert [(400, ""), (400, "0399"), (400, "0799"), (400, "1199")] == marks


def test_what_is_done_and_gone_is_passed(store: FilledStore):
    """Its folder shows others, so that it is not away as a whole."""
    store.put(*names(1, 2, 3))
    played = Played(store, **ORDERED, files_lookback="9")
    played.rounds()
    del store.objects["0002"]

    played.restart(**NO_LOOKBACK).rounds()

    assert ("0003", []) == (played.mark, played.entries)


def test_a_place_that_shows_nothing_moves_no_mark(store: FilledStore):
    """It may be away, with objects that no one has read; after a time it is gone for good."""
    store.put("a/1", "a/2", "b/1")
    more = {**NO_LOOKBACK, "files_recursive": "true", "files_forget_after_ms": "5000"}
    played = Played(store, **more)
    played.round(but="a/1")
    away = {key: store.objects.pop(key) for key in ("a/1", "a/2")}

    played.rounds()
    assert "" == played.mark
    store.objects.update(away)
    assert ["a/1"] == played.rounds()

    assert "b/1" == played.mark
    store.put("c/1", "d/1")
    played.round(but="d/1")
    store.objects.pop("c/1")
    played.rounds()
    assert "b/1" == played.mark, "c/ shows nothing"
    played.now = 5.0
    played.rounds()
    assert "d/1" == played.mark


def test_many_finished_objects_are_folded_by_and_by(
    store: FilledStore, monkeypatch: pytest.MonkeyPatch
):
    """From one entry each to a mark: nothing is read again."""
    monkeypatch.setattr("headrace.connectors.files.tracking.ordering.fold", partial(fold, most=10))
    store.put(*names(*range(35)))
    played = Played(store)
    played.rounds()
    assert ("", names(*range(35))) == (played.mark, played.entries)

    played.restart(**NO_LOOKBACK)
    counts = [(len(played.plan().offsets), played.mark) for _ in range(5)]

    assert [(11, "0009"), (11, "0019"), (11, "0029"), (6, "0034"), (0, "0034")] == counts
    assert [] == played.rounds()


# ------------------------------------------------------------------ what lies below the mark


def test_an_object_that_comes_too_late_is_not_read_but_told(
    store: FilledStore, caplog: pytest.LogCaptureFixture
):
    """Once, with how many there are, and where it is explained."""
    store.put(*names(1, 3, 5), at=100)
    played = Played(store, **NO_LOOKBACK)
    played.rounds()
    store.put("0002", at=101)
    store.put("0004", at=100)

    with caplog.at_level(logging.WARNING):
        assert [] == played.restart(**NO_LOOKBACK).rounds()
        played.rounds()

    (told,) = [each.message for each in caplog.records if "too_late" in each.message]
    assert "too_late=1" in told
    assert "or were changed after they were read" in told
    assert "The first one is s3://b/0002: " in told
    reasons = {key: str(each.reason) for key, each in played.explained().items()}
    assert reasons["0002"].startswith("too_late: ")
    assert "or was changed after it was read" in reasons["0002"]
    assert "counts as read" in reasons["0004"]
    assert "counts as read" in reasons["0001"]
    assert not any(each.slots or each.fails for each in played.explained().values())


def test_a_listing_that_was_cut_before_the_mark_is_no_check(
    store: FilledStore, caplog: pytest.LogCaptureFixture
):
    """A full round has not seen what is behind; the next listing looks."""
    store.put(*names(1, 2, 3, 9))
    played = Played(store, **NO_LOOKBACK)
    played.rounds()
    for key in names(1, 2):
        played.stored[entry_of(key)] = {"recordCount": 0}
    store.put("0005", at=9)

    with caplog.at_level(logging.WARNING):
        played.restart(**NO_LOOKBACK, files_max_objects_per_round="1").rounds()

    assert "too_late=1" in caplog.text


def test_a_listing_that_was_cut_behind_the_mark_is_a_check(
    store: FilledStore, monkeypatch: pytest.MonkeyPatch
):
    """Where names surely rise: a long way to go does not list everything for each round."""
    monkeypatch.setattr("headrace.connectors.files.tracking.ordering._PROOF", 1)
    store.put(*names(1, 2))
    played = Played(store, **NO_LOOKBACK)
    played.rounds()
    store.put(*names(*range(3, 9)))

    played.restart(**NO_LOOKBACK, files_max_objects_per_round="1").round()
    assert names(1, 2, 3, 4) == store.shown
    played.round()

    assert names(3, 4, 5) == store.shown


def test_an_entry_that_asks_for_it_is_read_below_the_mark(store: FilledStore):
    """Once, and then it is below the mark again."""
    store.put(*names(1, 2, 3))
    played = Played(store, **NO_LOOKBACK, files_late_check_ms="0")
    played.rounds()
    played.stored[entry_of("0002")] = {"recordCount": 0}

    assert ["0002"] == played.rounds()
    assert ("0003", []) == (played.mark, played.entries)


def test_an_object_that_is_overwritten_within_the_look_back_is_another_one(store: FilledStore):
    """Below the mark no one looks."""
    store.put(*names(1, 2, 3))
    played = Played(store, **ORDERED, files_lookback="1", files_changed="reread")
    played.rounds()
    store.put(*names(1, 3), version="v2")

    assert ["0003"] == played.rounds()


def test_what_is_read_again_is_not_folded_meanwhile(store: FilledStore):
    """Neither before the mark nor behind it: its entry is its slot's."""
    store.put(*names(1, 2, 3, 4))
    played = Played(store)
    played.rounds()
    played.stored[MARK_OF_STORE] = {"key": f"{ROOT}0002"}
    store.put("0001", "0003", version="v2")

    played.restart(**ORDERED, files_lookback="1", files_changed="reread")

    assert ["0001", "0003"] == played.round()
    assert ("0002", names(1, 3, 4)) == (played.mark, played.entries)
    played.rounds()
    assert ("0003", ["0004"]) == (played.mark, played.entries)


@pytest.mark.parametrize("decision", [Decision(waits=True), Decision(again_after=1.0)])
def test_what_is_looked_at_again_stops_the_mark(decision: Decision):
    """A file may be being replaced, although it was read to its end."""
    done: Stored = {SourcePartition(filename=f"/{name}"): {"done": True} for name in "abc"}
    known = by_file(done)
    config = FilesConfig.parse(
        {"files.path": "/", "topic": "t", "files.tracking": "ordered", "files.lookback": "0"}
    )
    below = BelowMark(NO_MARK, known, place="/", lists_all=True, now_ms=9)
    tracker = OrderedTracker(
        below, Asked(known), Ordering(config, ticks=lambda: 0.0, clock=lambda: 9.0)
    )
    for name, each in (("a", Decision()), ("b", decision), ("c", Decision())):
        tracker.passed(f"/{name}", 1)
        tracker.decided(f"/{name}", each)
    tracker.ended()

    assert {"key": "/a", "modified": 1} == tracker.offsets(is_idle=True)[SourcePartition(mark="/")]


def test_what_could_not_be_seen_does_not_make_a_listing_complete():
    """One that was cut before the mark has not seen what comes behind it."""
    done: Stored = {SourcePartition(filename="/d"): {"done": True}}
    known = by_file(done)
    config = FilesConfig.parse(
        {"files.path": "/", "topic": "t", "files.tracking": "ordered", "files.lookback": "0"}
        | {"files.forget.after.ms": "0"}
    )
    below = BelowMark(Mark(key="/b"), known, place="/", lists_all=True, now_ms=9)
    tracker = OrderedTracker(
        below, Asked(known), Ordering(config, ticks=lambda: 0.0, clock=lambda: 9.0)
    )
    assert tracker.missed("/e")
    tracker.saw("/a")
    tracker.decided("/a", Decision(waits=True))

    assert {} == tracker.offsets(is_idle=True)
    assert not tracker.is_through


def test_without_a_look_back_changes_are_not_looked_for(store: FilledStore):
    """Also while something stops the mark; one that is half read has changed, all the same."""
    store.put(*names(1, 2, 3))
    played = Played(store, **NO_LOOKBACK)
    played.round(but="0001")
    store.put("0003", version="v2")

    assert ["0001"] == played.rounds()
    assert "0003" == played.mark


# ------------------------------------------------------------------ where listings begin


def test_listings_begin_at_the_mark_but_for_the_check(store: FilledStore):
    """At the start, and each hour."""
    store.put(*names(*range(9)))
    played = Played(store, **ORDERED, files_lookback="2", files_late_check_ms="60000")
    played.rounds()
    assert names(7, 8) == store.shown

    played.now = 59.0
    played.plan()
    assert names(7, 8) == store.shown
    played.now = 60.0
    played.plan()
    assert names(*range(9)) == store.shown
    played.plan()
    assert names(7, 8) == store.shown
    played.restart(**ORDERED, files_lookback="2", files_late_check_ms="60000").plan()
    assert names(*range(9)) == store.shown


def test_without_a_check_listings_always_begin_at_the_mark(store: FilledStore):
    """Also the first one of a run; but never before where the user begins."""
    store.put(*names(*range(9)))
    more = {**NO_LOOKBACK, "files_late_check_ms": "0"}
    played = Played(store, **more)
    played.rounds()
    played.restart(**more).plan()
    assert [] == store.shown

    store.put(*names(9, 10, 11))
    assert names(11) == played.restart(**more, files_start_after="0010").round()
    assert names(11) == store.shown


def test_by_object_listings_never_begin_at_a_mark(store: FilledStore):
    """Names need not rise there."""
    store.put(*names(*range(9)))
    played = Played(store, **NO_LOOKBACK)
    played.rounds()

    played.restart().rounds()

    assert names(*range(9)) == store.shown


def test_what_is_half_read_below_the_mark_is_listed(store: FilledStore):
    """The listing begins before it."""
    store.put(*names(*range(9)))
    played = Played(store, **NO_LOOKBACK, files_late_check_ms="0")
    played.rounds()
    played.stored[entry_of("0004")] = {"recordCount": 1, "anchor": 3, "skip": 0}

    assert ["0004"] == played.rounds()


def test_what_is_half_read_elsewhere_is_not_looked_for_here(store: FilledStore):
    """Another bucket has another mark."""
    store.put(*names(*range(9)))
    played = Played(store, **NO_LOOKBACK, files_late_check_ms="0")
    played.rounds()
    half = SourcePartition(filename="s3://a/1")
    played.stored[half] = {"recordCount": 1, "anchor": 3, "skip": 0}

    played.plan()

    assert [] == store.shown


# ------------------------------------------------------------------ from one to the other


def test_a_mark_is_honoured_by_object_and_does_not_move(
    store: FilledStore, caplog: pytest.LogCaptureFixture
):
    """It is told once."""
    store.put(*names(1, 2, 3))
    played = Played(store, **NO_LOOKBACK)
    played.rounds()
    store.put("0004")

    with caplog.at_level(logging.WARNING):
        assert ["0004"] == played.restart().rounds()
        played.rounds()

    assert ("0003", ["0004"]) == (played.mark, played.entries)
    assert 1 == sum("has left a mark" in each.message for each in caplog.records)


def test_a_mark_of_another_place_is_nobodys(store: FilledStore):
    """Each bucket has its own; entries of other places stay."""
    store.put("0001")
    other: Stored = {
        SourcePartition(mark="s3://a/"): {"key": "s3://a/9"},
        SourcePartition(filename="s3://a/1"): {"recordCount": 1, "done": True},
    }
    played = Played(store, {**other}, **NO_LOOKBACK)

    assert (["0001"], "0001") == (played.rounds(), played.mark)
    assert [] == played.rounds()
    assert other.items() <= played.stored.items()


@settings(max_examples=drawn(60), deadline=None)
@given(
    steps=st.lists(
        st.tuples(st.sampled_from(["put", "round", "stuck", "restart"]), st.integers(0, 40)),
        max_size=40,
    ),
    lookback=st.integers(0, 6),
    limit=st.integers(0, 3),
)
def test_every_object_is_read_once_unless_it_came_too_late(
    steps: list[tuple[str, int]], lookback: int, limit: int
):
    """Whatever comes in between; and the entries stay as few as they can."""
    store = FilledStore()
    more = {**ORDERED, "files_lookback": str(lookback), "files_max_objects_per_round": str(limit)}
    played = Played(store, **more)
    late = set[str]()
    for time, (step, number) in enumerate(steps):
        (key,) = names(number)
        if step == "put" and key not in store.objects:
            late |= {key} if played.mark and key <= played.mark else set()
            store.put(key, at=time)
        elif step in ("round", "stuck"):
            played.round(but=key if step == "stuck" else "")
        elif step == "restart":
            played.restart(**more)

    played.restart(**more).rounds()

    assert sorted(store.objects.keys() - late) == sorted(played.read)
    assert len(played.entries) <= lookback + lookback // 10
    assert late.isdisjoint(played.read)


def test_the_mark_says_when_the_last_of_the_passed_was_changed(store: FilledStore):
    """What is passed later counts as well."""
    store.put("0001", at=7)
    played = Played(store, **NO_LOOKBACK)
    played.rounds()
    assert {"key": f"{ROOT}0001", "modified": 7} == played.stored[MARK_OF_STORE]
    store.put("0002", at=5)
    played.rounds()
    assert {"key": f"{ROOT}0002", "modified": 7} == played.stored[MARK_OF_STORE]
