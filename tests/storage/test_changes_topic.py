"""The records of changes of offsets, and the history that they add up to."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.connect.partition import SourcePartition
from headrace.storage.changes_topic import (
    ChangeState,
    ChangesTopic,
    change_entries,
    deletion_entry,
    state_entry,
)
from headrace.storage.protocols import (
    HistoryEntry,
    Intent,
    Operation,
    Phase,
    Retention,
    StoredConnector,
)
from headrace.storage.topic_records import UnreadableRecordError

ENTRY = HistoryEntry(
    id=1,
    connector="c",
    operation=Operation.ALTER,
    who="ann",
    at_ms=1,
    before={SourcePartition(f="a"): None},
    after={SourcePartition(f="a"): {"position": 7}},
)


def topic_of(*entries: tuple[bytes, bytes | None]) -> ChangesTopic:
    """What these records add up to."""
    topic = ChangesTopic()
    for entry in entries:
        topic.apply(*entry)
    return topic


def large(number: int = 1) -> Intent:
    """One that needs several records."""
    after = {SourcePartition(f=f"{each}" * 1000): {"position": each} for each in range(700)}
    return Intent(entry=replace(ENTRY, id=number, after=after))


def test_a_change_counts_once_all_of_its_records_are_there() -> None:
    """Whatever the writer or compaction left out."""
    entries = change_entries(large())

    assert 3 < len(entries)
    for missing in range(len(entries)):
        found = topic_of(*entries[:missing], *entries[missing + 1 :])
        assert ([], []) == (found.entries("c"), found.open_intents())
    found = topic_of(*entries)
    assert [large()] == found.open_intents()
    assert [large().entry] == found.entries("c")


def test_a_finished_change_is_no_intent() -> None:
    """Its entry says whether it was done."""
    begun = change_entries(Intent(entry=ENTRY))
    for done in (True, False):
        found = topic_of(*begun, state_entry(1, ChangeState(None, done)))
        assert [] == found.open_intents()
        assert [replace(ENTRY, done=done)] == found.entries("c")


def test_removed_changes_leave_nothing() -> None:
    """Not even for a moment a change without its end: its state goes first."""
    finished = state_entry(1, ChangeState(None, done=True))
    topic = topic_of(*change_entries(large()), finished)
    removals = topic.removals(replace(ENTRY, id=2), Retention(entries=1))

    assert len(change_entries(large())) == len(removals)
    for entry in removals:
        topic.apply(*entry)
        assert [] == topic.entries("c")
    assert 0 == topic.last


def test_a_change_that_has_not_finished_is_not_removed() -> None:
    """However many come after it."""
    topic = topic_of(*change_entries(large()))

    assert [] == topic.removals(replace(ENTRY, id=2, at_ms=10**15), Retention(entries=1))


def test_changes_before_a_deletion_are_of_another_connector() -> None:
    """Which had the same name."""
    second = replace(ENTRY, id=2)
    topic = topic_of(
        *change_entries(Intent(entry=ENTRY)),
        deletion_entry("c", 1),
        *change_entries(Intent(entry=second)),
    )

    assert [False, True] == [each.of_deleted for each in topic.entries("c")]


@pytest.mark.parametrize(
    ("key", "value", "said"),
    [
        (None, b"{}", "it has no key"),
        (b"other", b"{}", "its key 'other' is not known"),
        (b"state-x", b"{}", "its key has 'x' where a number is expected"),
        (b"change-1", b"{}", "its key has '' where a number is expected"),
        (b"state-1", b"{}", "it is no state of a change"),
        (b"state-1", b'{"phase":"gone","done":true}', "it is no state of a change"),
        (b"change-1-0", b'{"parts":1}', "its text is no string"),
        (b"change-1-0", b'{"parts":"1","text":""}', "its parts is no number"),
        (b"change-1-0", b'{"parts":1,"text":"{}"}', "it is no change of offsets"),
        (b"deleted-c", b"{}", "its last is no number"),
    ],
)
def test_what_cannot_be_read_changes_nothing(key: bytes | None, value: bytes, said: str) -> None:
    """The error says what is wrong with the record."""
    topic = ChangesTopic()
    with pytest.raises(UnreadableRecordError, match=said):
        topic.apply(key, value)

    assert [] == topic.open_intents()


VALUES = st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.text(max_size=5)
MAPS = st.dictionaries(st.text(max_size=5), VALUES, max_size=3)
OFFSETS = st.dictionaries(MAPS.map(SourcePartition), st.none() | MAPS, max_size=3)
CONFIGS = st.dictionaries(st.text(max_size=5), st.none() | st.text(max_size=5), max_size=3)


INTENTS = st.builds(
    Intent,
    entry=st.builds(
        HistoryEntry,
        id=st.integers(1, 99),
        connector=st.text(max_size=5),
        operation=st.sampled_from(Operation),
        who=st.none() | st.text(max_size=5),
        at_ms=st.integers(0, 2**63),
        before=OFFSETS,
        after=OFFSETS,
        done=st.just(value=False),
        undoes=st.none() | st.integers(1, 99),
    ),
    phase=st.sampled_from(Phase),
)


@given(intent=INTENTS, config=st.none() | CONFIGS)
def test_what_was_written_is_read(intent: Intent, config: dict[str, str | None] | None) -> None:
    """Whatever it changes, and whether a connector is stored with it."""
    if config is not None:
        stored = StoredConnector(name=intent.entry.connector, config=config)
        intent = replace(intent, stored=stored)

    assert [intent] == topic_of(*change_entries(intent)).open_intents()


@given(
    steps=st.lists(
        st.tuples(st.sampled_from("abc"), st.integers(0, 20), st.booleans()), max_size=30
    ),
    entries=st.integers(1, 3),
    days=st.integers(1, 5),
)
def test_what_is_kept_is_by_connector_and_by_time(
    steps: list[tuple[str, int, bool]], entries: int, days: int
) -> None:
    """Whatever clocks did: of each connector the newest, and none that is too old, unless it has not finished."""
    keep = Retention(entries=entries, max_age=timedelta(days=days))
    topic, kept = ChangesTopic(), dict[int, tuple[HistoryEntry, bool]]()
    for connector, day, is_finished in steps:
        entry = replace(ENTRY, id=topic.last + 1, connector=connector, at_ms=day * DAY_MS)
        removed = topic.removals(entry, keep)
        its = [number for number, (each, _) in kept.items() if each.connector == connector]
        gone = [
            number
            for number, (each, is_done) in kept.items()
            if is_done
            and (number in [*its, entry.id][:-entries] or each.at_ms < entry.at_ms - days * DAY_MS)
        ]
        assert [tombstone for each in gone for tombstone in tombstones(each)] == removed

        for number in gone:
            del kept[number]
        kept[entry.id] = replace(entry, done=is_finished), is_finished
        finished = [state_entry(entry.id, ChangeState(None, done=True))] if is_finished else []
        for record in (*removed, *change_entries(Intent(entry=entry)), *finished):
            topic.apply(*record)

    assert [each for each, is_done in kept.values() if not is_done] == [
        each.entry for each in topic.open_intents()
    ]
    for connector in "abc":
        expected = [each for each, _ in kept.values() if each.connector == connector]
        assert expected[::-1] == topic.entries(connector)


DAY_MS = 24 * 3600 * 1000


def tombstones(number: int) -> list[tuple[bytes, None]]:
    """Those of a change of one part."""
    return [(f"state-{number}".encode(), None), (f"change-{number}-0".encode(), None)]


def test_a_long_history_of_others_costs_no_question_anything() -> None:
    """Each is looked up by its connector, and by its age."""
    topic = ChangesTopic()
    finished = ChangeState(None, done=True)
    for number in range(1, 3001):
        entry = replace(ENTRY, id=number, connector=f"c{number}", at_ms=number)
        for record in (*change_entries(Intent(entry=entry)), state_entry(number, finished)):
            topic.apply(*record)

    looked_at = list[int]()
    complete = ChangesTopic._complete

    def counted(self: ChangesTopic, numbers: Collection[int]) -> list[Intent]:
        looked_at.append(len(numbers))
        return complete(self, numbers)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(ChangesTopic, "_complete", counted)
        newest = replace(ENTRY, id=3001, connector="c7", at_ms=3001)
        assert 1 == len(topic.entries("c7"))
        assert [] == topic.open_intents()
        assert [] == topic.removals(newest, Retention(entries=2))

    assert [1, 0, 1] == looked_at
