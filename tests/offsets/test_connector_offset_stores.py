"""Where connectors' offsets are, and what stays open for them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest

from headrace.config.client_settings import ConnectorOffsetsTopic
from headrace.connect.connector import Plan
from headrace.connect.errors import RetriableError
from headrace.connect.partition import SourcePartition
from headrace.offsets.connector_stores import NamedConnector
from headrace.offsets.connector_topic import KafkaConnectorTopic
from headrace.offsets.store import LockedOffsetStore
from headrace.offsets.target import OffsetTopic
from headrace.runtime.fencing import Ownership
from headrace.storage.memory import MemoryOffsetStore
from offsets.own_topics import OTHER, OWN, OpenedStores
from runtime.desk import SPEC, Desk

A = SourcePartition(file="a")


@pytest.fixture
def stage() -> OpenedStores:
    """What is tested."""
    return OpenedStores()


def _named(name: str = "c", own: ConnectorOffsetsTopic | None = OWN) -> NamedConnector:
    return NamedConnector(name=name, offsets_topic=own)


def test_connectors_with_the_same_settings_share_a_reader(stage: OpenedStores) -> None:
    """It follows the whole topic."""
    stage.stores.of(_named("c"))
    stage.stores.of(_named("d"))

    assert 1 == len(stage.opened)


@pytest.mark.parametrize(("now", "closed"), [(OWN, False), (OTHER, True), (None, True)])
def test_the_reader_of_replaced_settings_is_closed(
    stage: OpenedStores, now: ConnectorOffsetsTopic | None, *, closed: bool
) -> None:
    """When the connector starts with others, or is gone."""
    stage.stores.of(_named())
    stage.stores.keep_only(_named(own=now))

    assert [closed] == stage.closed()


def test_a_reader_that_another_connector_needs_stays_open(stage: OpenedStores) -> None:
    """Until that has other settings, too."""
    for name in ("c", "d"):
        stage.stores.of(_named(name))
    stage.stores.keep_only(_named("c", None))
    before = stage.closed()
    stage.stores.keep_only(_named("d", OTHER))

    assert ([False], [True]) == (before, stage.closed())


def test_settings_that_come_back_get_another_reader(stage: OpenedStores) -> None:
    """The one that was closed stays so."""
    stage.stores.of(_named())
    stage.stores.keep_only(_named(own=None))
    stage.stores.of(_named()).put({A: {"at": 1}})

    assert [True, False] == stage.closed()
    assert {A: {"at": 1}} == stage.opened[1].store.current("c").known()


def test_a_connector_that_takes_over_closes_the_reader_of_its_earlier_settings(
    stage: OpenedStores,
) -> None:
    """Its own stays open."""
    desk = Desk(plays=lambda *_: None, plan=lambda _: Plan())
    stage.stores.of(_named(SPEC.name))
    spec = replace(SPEC, offsets_topic=OTHER)
    Ownership(spec, replace(desk.services(), offsets=stage.stores)).take_over(give_up=lambda: False)
    desk.channel.close()

    assert [True, False] == stage.closed()


def test_callers_of_a_closed_reader_are_asked_to_retry() -> None:
    """It is not opened again, where no one would close it."""
    topic = KafkaConnectorTopic(OWN, refresh_seconds=0.1)
    topic.close()

    for use in (topic.existing, topic.ensured):
        with pytest.raises(RetriableError, match="Retry the request"):
            use()


def test_callers_of_a_closed_store_are_asked_to_retry() -> None:
    """The client's own complaint would look like a mistake of ours."""
    store = LockedOffsetStore(MemoryOffsetStore())
    store.close()

    for use in (
        lambda: store.current("c"),
        lambda: store.put("c", {A: None}),
        lambda: store.entries_for("c", {A: None}),
    ):
        with pytest.raises(RetriableError, match="Retry the request"):
            use()


WORKER_CONNECTION: Mapping[str, str] = {"bootstrap.servers": "127.0.0.1:1"}


@pytest.mark.parametrize("same", [False, True])
def test_a_same_named_topic_in_the_same_cluster_is_the_worker_s_store(
    stage: OpenedStores, *, same: bool
) -> None:
    """Written once, and nothing is copied."""
    stage.same = same
    offsets = stage.stores.of(_named(own=replace(OWN, worker_connection=WORKER_CONNECTION)))
    offsets.put({A: {"at": 1}})
    stage.stores.close()
    (topic,) = stage.opened

    own = OffsetTopic(name=OWN.topic, has_secondary=True)
    assert replace(own, has_secondary=not same) == offsets.target(own)
    assert {A: {"at": 1}} == stage.stores.worker.current("c").known()
    assert ({} if same else {A: {"at": 1}}) == topic.store.current("c").known()


def test_nothing_is_written_while_it_is_not_known_whose_topic_it_is(stage: OpenedStores) -> None:
    """Whoever asks hears which cluster did not answer."""
    stage.same = RetriableError("no answer.")
    offsets = stage.stores.of(_named(own=replace(OWN, worker_connection=WORKER_CONNECTION)))

    with pytest.raises(RetriableError, match="no answer"):
        offsets.put({A: {"at": 1}})
    assert {} == stage.stores.worker.current("c").known()
