"""Objects that cannot be gone on with in their middle: each is one transaction, or records may come twice."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

import pytest

from headrace.connect.connector import ExactlyOnceSupport, SourceConnector
from headrace.connect.errors import TaskFailedError
from headrace.sources import OffsetEntry
from headrace.task.connector_spec import BoundaryKind
from headrace.testing.task_runs import Stored
from sources.shelf import (
    PROPS,
    PlannedShelfConnector,
    Shelf,
    ShelfConnector,
    ShelfSource,
    ShelfTask,
    partition_of,
    played,
    run,
)


class Unordered(ShelfSource):
    """Its lines come in another order each time, or might."""

    resumes = False

    def entry_from_data(self, data: Mapping[str, object]) -> OffsetEntry | None:
        """None."""
        return None


class UnorderedTask(ShelfTask):
    """Reads it."""

    def source(self, config: object) -> Unordered:
        """The shelf."""
        return Unordered()


class UnorderedConnector(ShelfConnector):
    """The shelf in any order."""

    task_class = UnorderedTask
    source_class = Unordered


class PlannedUnorderedConnector(PlannedShelfConnector):
    """The same, planned."""

    task_class = UnorderedTask
    source_class = Unordered


OBJECTS = {"a": b"1\n2\n3\n", "b": b"", "c": b"4\n", "d": b"5\n6\n7\n"}
ALL = Counter(str(number) for number in range(1, 8))


@pytest.mark.parametrize("killed_at", range(1, 14))
def test_each_record_comes_once_where_each_object_is_a_transaction(shelf: Shelf, killed_at: int):
    """Wherever it is killed; nothing of a half read object is there, not in the offsets either."""
    shelf.objects = OBJECTS
    stored: Stored = {}

    first = played(
        UnorderedTask(), PROPS, boundary=BoundaryKind.CONNECTOR, stored=stored, killed_at=killed_at
    )
    assert all(offset["done"] for offset in stored.values())
    rest = played(UnorderedTask(), PROPS, boundary=BoundaryKind.CONNECTOR, stored=stored)

    assert ALL == Counter(first.values() + rest.values())
    assert {"a", "b", "c", "d"} == {each["key"] for each in stored if "key" in each}


def test_a_cut_connection_does_not_double_records_where_each_object_is_a_transaction(shelf: Shelf):
    """What was sent of the object is thrown away, because it is read from its beginning."""
    shelf.objects, shelf.broken = {"a": b"1\n" * 50, "b": b"2\n"}, {"a": 60}

    loop = played(UnorderedTask(), PROPS, boundary=BoundaryKind.CONNECTOR)

    assert {"1": 50, "2": 1} == Counter(loop.values())
    assert 1 == loop.sender.aborts


def test_a_cut_connection_loses_nothing_elsewhere(shelf: Shelf):
    """Passing over so many records would lose some, where their order is another one."""
    shelf.objects, shelf.broken = {"a": b"1\n" * 50}, {"a": 60}

    loop = played(UnorderedTask(), PROPS)

    assert 50 < len(loop.values())


def test_a_half_read_object_is_read_from_its_beginning(shelf: Shelf):
    """At least once, without transactions of its own."""
    shelf.objects = {"a": b"1\n2\n3\n"}
    stored: Stored = {}

    assert ["1"] == run(stored, 1, kind=UnorderedConnector)
    assert ["1", "2", "3"] == run(stored, kind=PlannedUnorderedConnector)
    assert [] == run(stored, kind=UnorderedConnector)


def test_objects_that_can_be_gone_on_with_may_be_transactions_as_well(shelf: Shelf):
    """One commit for each object, an empty one too, and none in between."""
    shelf.objects = OBJECTS

    loop = played(ShelfTask(), PROPS, boundary=BoundaryKind.CONNECTOR)

    assert ALL == Counter(loop.values())
    assert 4 == loop.sender.commits


@pytest.mark.parametrize(
    ("connector", "boundary", "supported"),
    [
        (ShelfConnector(), None, True),
        (PlannedShelfConnector(), "poll", True),
        (UnorderedConnector(), None, False),
        (UnorderedConnector(), "interval", False),
        (UnorderedConnector(), "poll", False),
        (UnorderedConnector(), "Connector", True),
        (PlannedUnorderedConnector(), None, False),
        (PlannedUnorderedConnector(), "connector", True),
    ],
)
def test_exactly_once_is_supported_where_it_can_be(
    connector: SourceConnector, boundary: str | None, *, supported: bool
):
    """Objects that cannot be gone on with need a transaction each."""
    props = {**PROPS, **({"transaction.boundary": boundary} if boundary else {})}
    expected = ExactlyOnceSupport.SUPPORTED if supported else ExactlyOnceSupport.UNSUPPORTED

    assert expected is connector.exactly_once_support(props)
    assert connector.can_define_transaction_boundaries(props)


def test_what_that_costs_is_told(caplog: pytest.LogCaptureFixture):
    """Before anything runs."""
    UnorderedConnector().start({**PROPS, "name": "c"})

    assert "Connector c: Objects of shelf cannot be gone on with in their middle" in caplog.text


def test_a_budget_does_not_end_it_within_an_object(shelf: Shelf):
    """Or it would be begun again for ever."""
    shelf.objects = {"a": b"1\n2\n3\n"}
    seen = list[bool]()
    task = UnorderedTask()
    polled = task.poll

    def poll() -> object:
        found = polled()
        seen.append(task.resumes_cheaply())
        return found

    task.poll = poll  # type: ignore[method-assign, assignment]
    played(task, PROPS)

    assert [False, False, True] == seen


class Forgetful(Unordered):
    """Does not say so."""

    resumes = True


class ForgetfulTask(ShelfTask):
    """Reads it."""

    def source(self, config: object) -> Forgetful:
        """The shelf."""
        return Forgetful()


def test_no_entry_of_a_source_that_promised_one_is_a_mistake(shelf: Shelf):
    """It would double records silently."""
    shelf.objects = {"a": b"1\n2\n"}

    with pytest.raises(
        TaskFailedError, match=r"Forgetful\.entry_from_data gives None .* resumes = "
    ):
        played(ForgetfulTask(), PROPS, stored={partition_of("a"): {"recordCount": 1}})
