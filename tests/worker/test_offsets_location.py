"""Where a worker's offsets are is remembered from the moment on when they can be there."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from pathlib import Path

import pytest

from headrace.connect.errors import TaskFailedError
from headrace.plugins import checked_worker
from headrace.task.slot_work import SlotTicket
from headrace.task.sql.step import SqlStage
from headrace.worker import DataPlane, running

pytestmark = pytest.mark.broker


class NoEngine:
    """Runs nothing."""

    slots = 1
    is_starting = False

    def run(self, tickets: Sequence[SlotTicket], sql_stage: SqlStage | None = None) -> None:
        """Never called."""

    def close(self) -> None:
        """Nothing to close."""


def start(bootstrap: str, state_file: Path, topic: str, replicas: int = 1) -> None:
    """Start a worker without connectors, and end it."""
    config = checked_worker(
        {
            "bootstrap.servers": bootstrap,
            "key.converter": "string",
            "value.converter": "string",
            "offset.storage.topic": topic,
            "offset.storage.partitions": "1",
            "offset.storage.replication.factor": str(replicas),
        }
    )
    plane = DataPlane.of(NoEngine())
    with running(config, [], state_file=state_file, emit=lambda _: None, data_plane=plane):
        pass


def test_a_topic_that_could_not_be_made_binds_no_one(bootstrap: str, tmp_path: Path) -> None:
    """Nothing can lie in it, so the corrected configuration starts; from then on the home is fixed."""
    state, topic = tmp_path / "state.db", f"standalone-{uuid.uuid4().hex[:8]}"
    with pytest.raises(TaskFailedError, match="replication"):
        start(bootstrap, state, f"{topic}-wrong", replicas=3)

    start(bootstrap, state, topic)

    with pytest.raises(TaskFailedError, match=f"source offsets are in the topic {topic},"):
        start(bootstrap, state, f"{topic}-other")
