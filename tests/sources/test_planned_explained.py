"""A planned native source: what is told of a plan, without acting, and whether more follows it."""

from __future__ import annotations

import pytest

from headrace.connect import Explained, SourceOffset, SourcePartition
from headrace.connect.connector import PlannedConnector, PlanRequest
from headrace.sources import PlannedNativeConnector
from headrace.testing.task_runs import StoredOffsets
from sources.shelf import PROPS, PlannedShelfConnector, Shelf, partition_of
from sources.test_acknowledging import TOLD, PlannedLendingConnector


def asked(stored: dict[SourcePartition, SourceOffset], slots: int = 2) -> PlanRequest:
    """For a plan."""
    return PlanRequest(slots=slots, offsets=StoredOffsets(stored))


def started(connector: PlannedNativeConnector, **more: str) -> PlannedNativeConnector:
    """*connector* with its settings."""
    connector.start({**PROPS, **{key.replace("_", "."): value for key, value in more.items()}})
    return connector


def test_explaining_tells_what_is_read_and_acknowledges_nothing(shelf: Shelf):
    """A plan does, when it finds an object done."""
    TOLD.clear()
    shelf.objects = {"a": b"1\n", "b": b"2\n"}
    stored: dict[SourcePartition, SourceOffset] = {
        partition_of("a"): {"recordCount": 1, "done": True}
    }
    connector = started(PlannedLendingConnector())

    assert [Explained(name="b", slots=(0,))] == list(connector.explain(asked(stored)))
    assert [] == TOLD
    connector.plan(asked(stored))
    assert ["a"] == [key for key, _ in TOLD]


def test_by_default_a_plan_is_told_by_its_source_partitions(shelf: Shelf):
    """What every planned connector has."""
    shelf.objects = {"a": b"1\n", "b": b"2\n"}
    connector = started(PlannedShelfConnector())

    told = list(PlannedConnector.explain(connector, asked({})))

    assert [Explained(name="key a", slots=(0,)), Explained(name="key b", slots=(1,))] == told


@pytest.mark.parametrize(("limit", "more"), [("1", True), ("2", False), ("0", False)])
def test_a_plan_says_whether_there_is_more(shelf: Shelf, limit: str, *, more: bool):
    """Than it may take."""
    shelf.objects = {"a": b"1\n", "b": b"2\n"}

    plan = started(PlannedShelfConnector(), native_max_objects_per_round=limit).plan(asked({}))

    assert more == plan.has_more
