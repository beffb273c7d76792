"""The conformance suite of stores of offset changes: subclass it, define its fixture, and inherit its tests."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

import pytest

from headrace.connect.partition import SourceOffset, SourcePartition
from headrace.offsets.codec import encoded_entries
from headrace.offsets.store import OffsetStore
from headrace.storage.protocols import (
    ChangeStore,
    ConfigStore,
    HistoryEntry,
    Intent,
    Operation,
    Phase,
    Retention,
    StoredConnector,
)

PARTITION = SourcePartition(filename="ü", part=1)
_DAY_MS = 86_400_000


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeStorage:
    """A store of changes, and the other stores that it writes to."""

    changes: ChangeStore
    offsets: OffsetStore
    configs: ConfigStore


def intent(
    connector: str = "c",
    *,
    at_ms: int = 1000 * _DAY_MS,
    after: SourceOffset | None = None,
    stored: StoredConnector | None = None,
) -> Intent:
    """An alteration of one partition, which had no offset before."""
    entry = HistoryEntry(
        connector=connector,
        operation=Operation.ALTER,
        who="ann",
        at_ms=at_ms,
        before={PARTITION: None},
        after={PARTITION: after},
    )
    return Intent(entry=entry, stored=stored)


class ChangeStoreSuite:
    """Tests a :class:`~headrace.storage.protocols.ChangeStore`; ``storage`` is empty and new each time."""

    @pytest.fixture
    def storage(self) -> ChangeStorage:
        """The storage under test; a subclass replaces this."""
        raise NotImplementedError

    def test_nothing_is_no_history(self, storage: ChangeStorage) -> None:
        """A connector without changes has no history and no intent."""
        assert list(storage.changes.entries("c")) == []
        assert list(storage.changes.open_intents()) == []

    def test_an_intent_comes_back_as_it_was(self, storage: ChangeStorage) -> None:
        """Types of values, the configuration and the requester survive; the entry has a number."""
        values: SourceOffset = {"i": 2**62, "f": 1.0, "b": True, "s": "\u2603\ud83d", "n": None}
        stored = StoredConnector(name="c", config={"a": "1"}, target_state="PAUSED")

        begun = storage.changes.begin(intent(after=values, stored=stored), Retention())

        assert begun.entry.id > 0
        assert [begun] == list(storage.changes.open_intents())
        assert [begun.entry] == list(storage.changes.entries("c"))
        (found,) = storage.changes.entries("c")
        assert repr(found.after) == repr({PARTITION: values})

    def test_a_finished_change_is_done(self, storage: ChangeStorage) -> None:
        """The intent is gone, and its connector is stored in the same transaction."""
        stored = StoredConnector(name="c", config={"a": "1"}, target_state="STOPPED")
        begun = storage.changes.begin(intent(stored=stored), Retention())
        assert storage.configs.connectors() == {}
        storage.changes.finish(begun)

        assert list(storage.changes.open_intents()) == []
        assert [each.done for each in storage.changes.entries("c")] == [True]
        assert {"c": stored} == storage.configs.connectors()

    def test_offsets_of_the_same_storage_are_stored_with_the_change(
        self, storage: ChangeStorage
    ) -> None:
        """The offset store shows them at its next refresh, and what was removed is gone."""
        other = SourcePartition(filename="b")
        storage.offsets.put("c", {other: {"position": 1}})
        storage.offsets.refresh()
        begun = storage.changes.begin(intent(), Retention())
        entries = encoded_entries("c", {PARTITION: {"position": 7}, other: None})
        storage.changes.finish(begun, entries)
        storage.offsets.refresh()

        assert storage.offsets.known("c") == {PARTITION: {"position": 7}}

    def test_an_abandoned_change_stays_in_the_history(self, storage: ChangeStorage) -> None:
        """The change stays undone, and nothing else is stored."""
        stored = StoredConnector(name="c", config={})
        begun = storage.changes.begin(intent(stored=stored), Retention())
        storage.changes.abandon(begun)

        assert list(storage.changes.open_intents()) == []
        assert [begun.entry] == list(storage.changes.entries("c"))
        assert not begun.entry.done
        assert storage.configs.connectors() == {}

    def test_what_becomes_of_an_intent_is_kept(self, storage: ChangeStorage) -> None:
        """The phase of one intent changes, and of no other."""
        first = storage.changes.begin(intent(), Retention())
        second = storage.changes.begin(intent("d"), Retention())
        moved = storage.changes.move(first, Phase.WIPING)

        assert moved.phase is Phase.WIPING
        assert [moved, second] == list(storage.changes.open_intents())

    def test_each_connector_has_its_own_history_newest_first(self, storage: ChangeStorage) -> None:
        """Connectors do not see each other's changes, and numbers rise."""
        begun = [storage.changes.begin(intent(name), Retention()) for name in ("c", "d", "c")]

        numbers = [each.entry.id for each in begun]
        assert sorted(set(numbers)) == numbers
        assert [numbers[2], numbers[0]] == [each.id for each in storage.changes.entries("c")]

    def test_changes_of_a_deleted_connector_are_marked(self, storage: ChangeStorage) -> None:
        """Changes from before the deletion are marked; those of the next connector of that name are not."""
        for name in ("c", "d"):
            storage.changes.finish(storage.changes.begin(intent(name), Retention()))
        storage.configs.delete_connector("c")
        storage.changes.finish(storage.changes.begin(intent(), Retention()))

        assert [each.of_deleted for each in storage.changes.entries("c")] == [False, True]
        assert [each.of_deleted for each in storage.changes.entries("d")] == [False]

    def test_history_is_bounded_by_count(self, storage: ChangeStorage) -> None:
        """The newest of a connector stay; another connector's stay, too, and so do changes in progress."""
        keep = Retention(entries=2)
        going_on = storage.changes.begin(intent(), keep)
        storage.changes.finish(storage.changes.begin(intent("d"), keep))
        done = [storage.changes.begin(intent(), keep) for _ in range(4)]
        for each in done:
            storage.changes.finish(each)
        last = storage.changes.begin(intent(), keep)

        expected = [last.entry.id, done[-1].entry.id, going_on.entry.id]
        assert expected == [each.id for each in storage.changes.entries("c")]
        assert len(storage.changes.entries("d")) == 1

    def test_history_is_bounded_by_age(self, storage: ChangeStorage) -> None:
        """Changes older than the retention are removed, of any connector."""
        keep = Retention(max_age=timedelta(days=30))
        old = storage.changes.begin(intent("gone", at_ms=10 * _DAY_MS), keep)
        storage.changes.finish(old)
        storage.changes.begin(intent(at_ms=40 * _DAY_MS), keep)
        assert len(storage.changes.entries("gone")) == 1
        new = storage.changes.begin(intent(at_ms=41 * _DAY_MS), keep)

        assert list(storage.changes.entries("gone")) == []
        assert new.entry.id > old.entry.id
