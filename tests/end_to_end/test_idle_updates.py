"""Offsets that an idle planned connector moves, in a real offsets topic (KIP-910)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import pytest

from doubles.puppets import PLANNED, SOURCE, Puppet, puppet, reading
from end_to_end.live import Life, numbers
from headrace.connect.partition import SourcePartition
from headrace.connect.task import Offsets
from headrace.observe.events import ConnectorIdle, MicroBatchStarted, OffsetsMoved
from headrace.testing.judge import committed_records
from waiting import until

pytestmark = pytest.mark.broker

OTHER = SourcePartition(source="other")
ROWS = 10
# What is returned while nothing is read, and all that is stored of the two sources then, in order.
UPDATES: Mapping[str, tuple[Offsets | None, Mapping[str, list[object]]]] = {
    "nothing": (None, {"puppet": [{"next": ROWS}]}),
    "add": ({OTHER: {"looked": 1}}, {"puppet": [{"next": ROWS}], "other": [{"looked": 1}]}),
    "replace": (
        {SOURCE: {"next": ROWS, "looked": 1}},
        {"puppet": [{"next": ROWS}, {"next": ROWS, "looked": 1}]},
    ),
    "tombstone": ({SOURCE: None}, {"puppet": [{"next": ROWS}, None]}),
}


def stored(life: Life) -> Mapping[str, Mapping[str, list[object]]]:
    """What the offsets topic has of each connector, by source, as another client library reads it."""
    found = dict[str, dict[str, list[object]]]()
    for each in committed_records(life.bootstrap, f"{life.name}-offsets"):
        connector, partition = json.loads(each.key)
        offset = None if each.value is None else json.loads(each.value)
        found.setdefault(connector, {}).setdefault(partition["source"], []).append(offset)
    return found


@pytest.mark.parametrize("support", ["enabled", "disabled"])
def test_an_idle_planned_connector_moves_offsets_without_a_job(
    bootstrap: str, tmp_path: Path, support: str
) -> None:
    """Each change is in the topic once, however often the hook returns it, and no record comes of it."""
    life = Life(bootstrap, tmp_path)
    life.worker |= {
        "exactly.once.source.support": support,
        "offset.storage.topic": f"{life.name}-offsets",
        "offset.flush.interval.ms": "50",
    }
    names = {update: life.add(PLANNED, reading(life.next_name(), ROWS)) for update in UPDATES}
    assert {} == life.run_once()
    jobs = len(life.heard(MicroBatchStarted))
    for update, (offsets, _) in UPDATES.items():
        puppet(names[update], Puppet(update=lambda _, offsets=offsets: offsets))

    with life.running():
        until(lambda: len(life.heard(OffsetsMoved)) == len(UPDATES) - 1, seconds=120)
        rests = len(life.heard(ConnectorIdle))
        until(lambda: len(life.heard(ConnectorIdle)) > rests + 5 * len(UPDATES), seconds=120)

    assert {names[update]: kept for update, (_, kept) in UPDATES.items()} == stored(life)
    assert [numbers(ROWS)] * len(UPDATES) == [life.values(name) for name in names.values()]
    assert jobs == len(life.heard(MicroBatchStarted))
