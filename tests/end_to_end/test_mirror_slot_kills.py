"""A mirror whose slots are killed and frozen: on the first version of transactions, and without any."""

from __future__ import annotations

import random
from collections.abc import Mapping
from pathlib import Path

import pytest

from end_to_end.growing_topics import Records
from end_to_end.mirror_worker import MirrorWorker
from end_to_end.mirrored import SOURCE, Mirrored, committed, with_own_time
from end_to_end.scene import pause
from spark.kafka.tables import Topics
from waiting import until

pytestmark = [
    pytest.mark.broker,
    pytest.mark.kill,
    pytest.mark.spark,
    pytest.mark.slow,
    pytest.mark.timeout(600),
]

SECONDS = 120.0


def hit(
    flow: Mirrored, folder: Path, chance: random.Random, settings: Mapping[str, str] | None = None
) -> list[str]:
    """Have one slot killed and one frozen while records are written; returns the topics once all of them are copied."""
    records = Records(flow.topics, chance)
    records.create(2)
    worker = MirrorWorker(folder, flow.target, flow.connector(settings))
    worker.start()

    def advance() -> None:
        before = sum(flow.positions().values())
        until(
            lambda: sum(flow.positions().values()) > before or not worker.is_running,
            seconds=SECONDS,
        )
        assert worker.is_running, worker.said()

    try:
        with records.written():
            for each in (worker.kill_slot, worker.freeze_slot):
                advance()
                pause(chance, 1.0)
                each(chance)
            advance()
        until(lambda: flow.is_through(records.names) or not worker.is_running, seconds=SECONDS)
        worker.stop()
    finally:
        worker.end()
    assert flow.is_through(records.names), worker.said()
    return records.names


def test_on_the_first_version_of_transactions_every_record_is_copied_once(
    bootstrap: str, first_bootstrap: str, tmp_path: Path
) -> None:
    """There a request that arrives late would join the next transaction of the same epoch."""
    flow = Mirrored(Topics(bootstrap), first_bootstrap)

    names = hit(flow, tmp_path, random.Random(1))

    assert {} == flow.differences(names)


def test_without_transactions_records_may_be_copied_twice_and_are_never_lost(
    bootstrap: str, first_bootstrap: str, tmp_path: Path
) -> None:
    """What was copied after the last position is copied again."""
    flow = Mirrored(Topics(bootstrap), first_bootstrap)

    names = hit(flow, tmp_path, random.Random(2), {"transaction.producer.enabled": "false"})

    wanted = committed(bootstrap, names)
    found = committed(first_bootstrap, [f"{SOURCE}.{each}" for each in names])
    lost_or_foreign = {
        (name, number): set(records) ^ set(found[f"{SOURCE}.{name}"][number])
        for name in names
        for number, records in with_own_time(wanted[name]).items()
    }
    assert {} == {place: each for place, each in lost_or_foreign.items() if each}
