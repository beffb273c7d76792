"""``update_offsets`` asked on the driver."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import ClassVar, cast

import pytest

from doubles.puppets import SOURCE, PolledPuppet, Puppet, PuppetTask, puppet
from headrace.connect.errors import TaskFailedError
from headrace.connect.partition import SourcePartition
from headrace.connect.task import Offsets, SourceTask
from headrace.offsets.store import OffsetSnapshot
from headrace.runtime.rounds import idle_updates
from headrace.runtime.services import RunSpec
from headrace.task.connector_spec import BoundaryKind, Delivery
from runtime.desk import SPEC

OTHER = SourcePartition(shelf="other")


def test_each_task_is_asked_with_its_own_configuration() -> None:
    """Tasks of a polled connector have partitions of their own."""
    moves: list[Offsets] = [{SourcePartition(shelf=number): {"next": number}} for number in (0, 1)]
    for number, moved in enumerate(moves):
        puppet(f"shelf-{number}", Puppet(update=lambda _, moved=moved: moved))
    spec = replace(SPEC, connector=PolledPuppet())

    moved = idle_updates(spec, OffsetSnapshot({}), [{"name": "shelf-0"}, {"name": "shelf-1"}])

    assert dict(enumerate(moves)) == moved


@pytest.fixture
def spec() -> RunSpec:
    """A polled connector."""
    return replace(SPEC, connector=PolledPuppet())


def asked(spec: RunSpec, puppet_of_c: Puppet, stored: Offsets | None = None) -> Offsets:
    """What the one task of the connector moves while *stored* is committed."""
    puppet("c", puppet_of_c)
    known = {key: value for key, value in (stored or {}).items() if value is not None}
    return idle_updates(spec, OffsetSnapshot(known), [{"name": "c"}]).get(0, {})


def test_what_is_stored_already_is_left_out(spec: RunSpec) -> None:
    """A source that stands still makes no transaction; a removal of nothing is nothing either."""
    gone = SourcePartition(shelf="gone")
    update = Puppet(update=lambda _: {SOURCE: {"next": 7}, gone: None})

    assert {} == asked(spec, update, {SOURCE: {"next": 7}})
    assert {SOURCE: {"next": 7}} == asked(spec, update, {SOURCE: {"next": 6}})


def test_the_argument_cannot_be_changed(spec: RunSpec) -> None:
    """As in a slot."""

    def attempt(offsets: Offsets) -> None:
        offsets[SOURCE] = {"next": 1}  # type: ignore[index]

    with pytest.raises(RuntimeError, match="does not support item assignment"):
        asked(spec, Puppet(update=attempt))


@pytest.mark.parametrize("delivery", Delivery)
@pytest.mark.parametrize(
    "result",
    [None, {}, {OTHER: {"next": 1}}, {SOURCE: {"next": 8}}, {SOURCE: None}],
    ids=["null", "empty", "added", "replaced", "tombstone"],
)
def test_what_the_hook_returns_is_moved(
    spec: RunSpec, delivery: Delivery, result: Offsets | None
) -> None:
    """A partition that is stored, another one, or none; in both modes."""
    update = Puppet(update=lambda _: result)

    assert (result or {}) == asked(replace(spec, delivery=delivery), update, {SOURCE: {"next": 7}})


@pytest.mark.parametrize(
    "result",
    [7, {"a": {}}, {None: {"next": 1}}, {SOURCE: 7}, {SOURCE: {"next": object()}}],
    ids=["number", "text", "null partition", "offset", "value"],
)
@pytest.mark.parametrize("delivery", Delivery)
def test_a_result_of_wrong_shape_fails_an_exactly_once_connector_only(
    spec: RunSpec, delivery: Delivery, result: object
) -> None:
    """At least once it is logged, and nothing moves."""
    spec = replace(spec, delivery=delivery)
    update = Puppet(update=lambda _: cast("Offsets", result))

    if spec.exactly_once:
        with pytest.raises(TaskFailedError, match="update_offsets returned"):
            asked(spec, update)
    else:
        assert {} == asked(spec, update)


def test_a_hook_that_raises_fails_an_exactly_once_connector(spec: RunSpec) -> None:
    """The message names the hook."""
    with pytest.raises(RuntimeError, match="update_offsets raised ZeroDivisionError: division by"):
        asked(spec, Puppet(update=lambda _: 1 / 0))  # type: ignore[arg-type,return-value]


def test_a_hook_that_raises_is_asked_again_at_least_once(
    spec: RunSpec, caplog: pytest.LogCaptureFixture
) -> None:
    """The log has the connector and the error, and what its other tasks move is moved."""
    spec = replace(spec, delivery=Delivery.AT_LEAST_ONCE)
    puppet("raising", Puppet(update=lambda _: 1 / 0))  # type: ignore[arg-type,return-value]
    puppet("moving", Puppet(update=lambda _: {SOURCE: {"next": 7}}))

    moved = idle_updates(spec, OffsetSnapshot({}), [{"name": "raising"}, {"name": "moving"}])

    assert {1: {SOURCE: {"next": 7}}} == moved
    assert "update_offsets of c raised; it is called again later" in caplog.messages
    assert "ZeroDivisionError: division by zero" in caplog.text


@pytest.mark.parametrize("requests", [True, False])
def test_a_connector_that_places_transactions_is_asked_when_it_wants_one(
    spec: RunSpec, *, requests: bool
) -> None:
    """Its task has a transaction context here, too."""
    task = RequestingTask if requests else PuppetTask
    connector = PolledPuppet()
    connector.task_class = task  # type: ignore[misc]
    spec = replace(spec, connector=connector, boundary=BoundaryKind.CONNECTOR)
    moved = {SOURCE: {"next": 7}}

    assert (moved if requests else {}) == asked(spec, Puppet(update=lambda _: moved))


class RequestingTask(PuppetTask):
    """Wants a transaction to end as soon as it is started."""

    def start(self, config: Mapping[str, str]) -> None:
        """Ask for it."""
        super().start(config)
        assert self.context.transaction is not None
        self.context.transaction.commit_transaction()


class Locked(PuppetTask):
    """Opens something, and then finds a door that is locked."""

    def start(self, config: Mapping[str, str]) -> None:
        """Not to the end."""
        super().start(config)
        raise PermissionError("locked")


class LockedConnector(PolledPuppet):
    """Has such tasks."""

    task_class: ClassVar[type[SourceTask]] = Locked


def test_a_task_that_could_not_be_started_is_stopped() -> None:
    """What it had opened by then would else stay open, once more at each flush interval."""
    stops = list[str]()
    puppet("c", Puppet(stop=lambda: stops.append("stopped")))

    with pytest.raises(PermissionError, match="locked"):
        idle_updates(
            replace(SPEC, connector=LockedConnector()), OffsetSnapshot({}), [{"name": "c"}]
        )

    assert ["stopped"] == stops
