"""What entries say of objects that are missing, so that short runs count together."""

from __future__ import annotations

import pytest

from connectors.tracked_store import BEGUN, FilledStore, Played, entry_of
from headrace.connect.errors import OffsetsError
from headrace.connect.partition import OffsetValue
from headrace.connectors.files.connector import FilesConnector
from headrace.offsets.index import LogPosition, packed_value

ALL = ["a", "b", "c"]
HOUR = {"files_forget_after_ms": "3600000"}
AT_ONCE = {"files_forget_after_ms": "0"}
DAY = 24 * 3600.0
MINUTES = 300.0


@pytest.fixture
def played() -> Played:
    """Three objects of a store, read."""
    store = FilledStore()
    store.put(*ALL)
    made = Played(store, **HOUR)
    made.rounds()
    return made


def noted(played: Played) -> list[str]:
    """The keys of entries with notes."""
    return [key for key in played.entries if "missing" in played.stored[entry_of(key)]]


# ------------------------------------------------------------------ runs that are short


def test_time_counts_over_short_runs(played: Played):
    """Between two of them for half of what is needed at most."""
    del played.store.objects["b"]
    for played.now in (100.0, 2000.0, 3799.0):
        played.restart(**HOUR).rounds()
        assert ALL == played.entries
    entry = played.stored[entry_of("b")]
    assert ((BEGUN + 2000) * 1000, 1900_000) == (entry["missing"], entry["missed"])
    FilesConnector().validate_offsets({}, played.stored)
    played.now = 3800.0

    played.restart(**HOUR).rounds()

    assert ["a", "c"] == played.entries


@pytest.mark.parametrize("gone", ["b", "abc"])
def test_a_daily_run_forgets_on_the_second_day(played: Played, gone: str):
    """By the default time; also what its folder is away with."""
    for key in gone:
        del played.store.objects[key]
    for played.now in (100.0, 100.0 + DAY):
        played.restart().rounds()
        assert ALL == played.entries
    played.now += DAY

    played.restart().rounds()

    assert [key for key in ALL if key not in gone] == played.entries


def test_an_empty_folder_is_forgotten_by_short_runs_too(played: Played):
    """After a day, whatever the time is."""
    played.store.objects.clear()
    for played.now in (1.0, DAY / 2 + 1.0, DAY):
        played.restart(**AT_ONCE).rounds()
        assert ALL == played.entries
    played.now += 1.0

    played.restart(**AT_ONCE).rounds()

    assert [] == played.entries


# ------------------------------------------------------------------ clocks that are wrong


@pytest.mark.parametrize("skews", [(-BEGUN, 0, 0), (0, 2 * DAY, 0, 2 * DAY, 0), (-9 * DAY, 0, 0)])
@pytest.mark.parametrize("more", [HOUR, {}])
def test_a_clock_that_was_wrong_forgets_nothing(
    played: Played, skews: tuple[float, ...], more: dict[str, str]
):
    """Of a place that is away for a moment."""
    played.store.objects.clear()

    for played.skew in skews:
        played.now += 1.0
        played.restart(**more).rounds()

    assert ALL == played.entries


def test_one_step_of_a_clock_forgets_no_object(played: Played):
    """Nor what is missing beside others; with the next one, when time has passed, it is forgotten."""
    del played.store.objects["b"]
    for played.skew in (-BEGUN, 0.0):
        played.now += 1.0
        played.restart(**HOUR).rounds()
        assert ALL == played.entries

    played.now += 1801.0
    played.restart(**HOUR).rounds()

    assert ["a", "c"] == played.entries


def test_a_note_of_the_future_is_written_again(played: Played):
    """By a clock that was wrong: nothing would ever be forgotten, and what it counted is not to be believed."""
    del played.store.objects["b"]
    later = int((BEGUN + 10**6) * 1000)
    note = {"missing": later, "missed": 10**9}
    played.stored[entry_of("b")] = {**played.stored[entry_of("b")], **note}
    for played.now in (1.0, 1802.0, 3600.0):
        played.restart(**HOUR).rounds()
        assert "b" in played.entries
    played.now = 3700.0

    played.restart(**HOUR).rounds()

    assert ["a", "c"] == played.entries


# ------------------------------------------------------------------ what is there again


@pytest.mark.parametrize(
    "more",
    [
        {},
        {"files_tracking": "ordered"},
        {"files_modified_since": "1970-01-01T00:00:01"},
        {"files_exclude": "b"},
        {"files_path": "s3://b/a*,s3://b/b*"},
        {"files_path": "s3://b/[ac]"},
    ],
)
def test_what_is_seen_again_has_no_note(played: Played, more: dict[str, str]):
    """Whatever the settings do with it: else it would count when the object is missing the next time."""
    away = played.store.objects.pop("b")
    played.restart(**HOUR).rounds()
    assert ["b"] == noted(played)
    played.store.objects["b"] = away

    played.restart(**more).rounds()

    assert [] == noted(played)


def test_time_begins_again_when_the_object_is_seen_again(played: Played):
    """In any listing of any run; an object that is to be read then has its entry from its slot."""
    before, store = dict(played.stored), played.store
    away = {key: store.objects.pop(key) for key in "bc"}
    played.now = 100.0
    played.restart(**HOUR).rounds()
    store.objects |= away
    store.put("c", version="v2")
    played.now = 3000.0
    assert ["c"] == played.restart(**HOUR, files_changed="reread").rounds()
    assert before[entry_of("b")] == played.stored[entry_of("b")]
    assert [] == noted(played)
    del store.objects["b"]

    for played.now in (3100.0, 4901.0, 6699.0):
        played.restart(**HOUR).rounds()
        assert ALL == played.entries
    played.now = 6702.0
    played.restart(**HOUR).rounds()
    assert ["a", "c"] == played.entries


def test_a_note_that_is_left_does_not_count_in_the_run_that_saw_the_object(played: Played):
    """Its removal may wait for another plan."""
    played.restart(**HOUR).rounds()
    note = {"missing": BEGUN * 1000 - DAY * 1000, "missed": 10**9}
    played.stored[entry_of("b")] = {**played.stored[entry_of("b")], **note}
    del played.store.objects["b"]
    played.now = 60.0

    played.rounds()

    assert ALL == played.entries


def test_notes_of_what_is_there_again_go_in_a_full_round_too(played: Played):
    """Each is removed once, although the next plan goes on with the same listing."""
    for key in "ab":
        played.stored[entry_of(key)] = {**played.stored[entry_of(key)], "missing": 1}
    played.store.put("d", "e")
    played.restart(**HOUR, files_max_objects_per_round="1")

    assert ["d"] == played.round()
    assert [] == noted(played)
    plan = played.plan()
    assert ({}, ["e"]) == (
        dict(plan.offsets),
        [str(split.partition["filename"])[-1] for share in plan.shares for split in share],
    )


# ------------------------------------------------------------------ how much is written


def test_a_place_that_is_away_for_a_moment_costs_nothing(played: Played):
    """Only what has been missing for minutes is noted, once."""
    away = dict(played.store.objects)
    played.store.objects.clear()
    for played.now in (61.0, 200.0):
        assert {} == played.plan().offsets
    played.store.objects |= away
    assert {} == played.plan().offsets
    del played.store.objects["b"]
    played.now = 300.0
    assert {} == played.plan().offsets
    played.now += MINUTES

    assert [1, 0] == [len(played.plan().offsets) for _ in range(2)]
    assert 300_000 == played.stored[entry_of("b")]["missed"]


def test_the_first_plan_without_work_notes_what_is_missing(played: Played):
    """A run may end with it; one that has work does not write more than that."""
    del played.store.objects["b"]
    played.store.put("d")
    played.restart(**HOUR)

    assert ["d"] == played.round()
    assert [] == noted(played)
    assert [1, 0] == [len(played.plan().offsets) for _ in range(2)]
    assert ["b"] == noted(played)


def test_a_note_stays_as_it_is_until_half_of_the_time_is_over(played: Played):
    """Runs may follow one another each minute."""
    del played.store.objects["b"]
    played.restart(**HOUR).rounds()
    for played.now in (60.0, 1799.0):
        assert {} == played.restart(**HOUR).plan().offsets
    played.now = 1800.0

    assert 1 == len(played.restart(**HOUR).plan().offsets)


def test_notes_are_few_in_a_transaction_and_written_once(
    played: Played, monkeypatch: pytest.MonkeyPatch
):
    """The next plan goes on with those that are left."""
    monkeypatch.setattr("headrace.connectors.files.tracking.retention.MOST", 2)
    played.store.put("d")
    played.rounds()
    for key in ALL:
        del played.store.objects[key]
    played.restart(**HOUR)

    assert [2, 1, 0] == [len(played.plan().offsets) for _ in range(3)]
    played.now = 2 * MINUTES
    assert {} == played.plan().offsets


# ------------------------------------------------------------------ as offsets


def test_an_entry_with_a_note_is_packed_like_any_other():
    """There may be millions."""
    entry = b'{"recordCount":1,"done":true,"missing":1800000000000,"missed":1}'

    assert packed_value(entry, LogPosition(partition=0, offset=1, timestamp=2)) is not None


@pytest.mark.parametrize("key", ["missing", "missed"])
@pytest.mark.parametrize("value", [-1, "yesterday", True])
def test_a_note_that_is_no_time_is_vetoed(key: str, value: OffsetValue):
    """It would be taken for nothing."""
    with pytest.raises(OffsetsError, match=f"'{key}'"):
        FilesConnector().validate_offsets({}, {entry_of("a"): {"done": True, key: value}})
