"""What a worker tells of the topics of its connectors, as its configuration says (KIP-558)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from headrace.herder.errors import ForbiddenError
from headrace.herder.worker_herder import WorkerHerder
from headrace.plugins import checked_worker
from headrace.storage.protocols import StoredConnector
from headrace.storage.sqlite import SqliteStorage
from headrace.worker import serving

WORKER = {"key.converter": "string", "value.converter": "string", "group.id": "g"}


@contextmanager
def herder_of(folder: Path, **settings: str) -> Iterator[WorkerHerder]:
    """A worker with a connector that has written to a topic."""
    config = checked_worker(
        {**WORKER, **{key.replace("_", "."): value for key, value in settings.items()}}
    )
    storage = SqliteStorage(folder / "state.db")
    storage.configs.put_connector(StoredConnector(name="c", config={}))
    storage.topics.put("c", ["t"])
    try:
        with serving(config, state_file=storage, emit=lambda _: None) as herder:
            yield herder
    finally:
        storage.close()


def test_topics_are_reported_and_reset_unless_that_is_switched_off(tmp_path: Path) -> None:
    """As Kafka Connect does by itself."""
    with herder_of(tmp_path) as herder:
        assert ["t"] == list(herder.topics("c"))
        herder.reset_topics("c")
        assert [] == list(herder.topics("c"))


def test_without_tracking_nothing_is_reported_or_reset(tmp_path: Path) -> None:
    """403 in Kafka Connect's words, also for connectors that are not there."""
    with herder_of(tmp_path, topic_tracking_enable="false") as herder:
        for ask in (herder.topics, herder.reset_topics):
            with pytest.raises(ForbiddenError, match=r"^Topic tracking is disabled\.$"):
                ask("c")


def test_a_reset_may_be_forbidden(tmp_path: Path) -> None:
    """403 in Kafka Connect's words; topics are told, and stay."""
    with herder_of(tmp_path, topic_tracking_allow_reset="false") as herder:
        with pytest.raises(ForbiddenError, match=r"^Topic tracking reset is disabled\.$"):
            herder.reset_topics("c")
        assert ["t"] == list(herder.topics("c"))
