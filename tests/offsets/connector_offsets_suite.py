"""What the offsets of every connector promise, wherever they are; each backend runs these tests."""

from __future__ import annotations

import pytest

from doubles.copied_positions import copied
from headrace.offsets.connector_stores import ConnectorOffsets


class ConnectorOffsetsSuite:
    """A backend gives *offsets*, which are empty, and may give another *source* topic."""

    @pytest.fixture
    def source(self) -> str:
        """The topic in the source partitions."""
        return "t"

    def test_there_are_none_at_first(self, offsets: ConnectorOffsets) -> None:
        """And that is no failure."""
        assert {} == dict(offsets.current().known())

    def test_what_is_committed_is_read(self, offsets: ConnectorOffsets, source: str) -> None:
        """The newest of each partition, at once."""
        zero, one = copied(source), copied(source, 1)
        offsets.put({zero: {"offset": 4}})
        offsets.put({zero: {"offset": 5}, one: {"offset": 9}})

        found = offsets.current()
        assert {zero: {"offset": 5}, one: {"offset": 9}} == dict(found.known())
        assert {"offset": 5} == found.offset(zero)
        assert {one: {"offset": 9}} == found.offsets([one])

    def test_what_is_removed_is_gone(self, offsets: ConnectorOffsets, source: str) -> None:
        """Alone or together with commits, and may be removed again."""
        zero, one = copied(source), copied(source, 1)
        offsets.put({zero: {"offset": 4}, one: {"offset": 5}})
        offsets.put({zero: None, one: {"offset": 6}})

        assert {one: {"offset": 6}} == dict(offsets.current().known())
        offsets.put({zero: None, one: None})
        assert {} == dict(offsets.current().known())

    def test_what_has_not_changed_is_the_same_mapping(
        self, offsets: ConnectorOffsets, source: str
    ) -> None:
        """By which a run sees that nobody else has committed."""
        offsets.put({copied(source): {"offset": 4}})
        before = offsets.current().known()

        assert before is offsets.current().known()
        offsets.put({copied(source): {"offset": 5}})
        assert {copied(source): {"offset": 4}} == dict(before)
        assert before is not offsets.current().known()

    def test_offsets_come_back_as_they_are_said_to(
        self, offsets: ConnectorOffsets, source: str
    ) -> None:
        """By which a change of offsets is known to be done."""
        given = {copied(source): {"offset": 4, "note": "x"}}
        expected = offsets.as_stored(given)
        offsets.put(given)

        assert dict(expected) == dict(offsets.current().known())

    def test_nothing_is_left_to_do(self, offsets: ConnectorOffsets, source: str) -> None:
        """Nobody else uses the store, or has written in another form; copies are made in time."""
        offsets.put({copied(source): {"offset": 4}})

        offsets.refuse_other_users()
        assert {} == dict(offsets.differently_encoded())
        offsets.catch_up()
        assert offsets.settle(20)
