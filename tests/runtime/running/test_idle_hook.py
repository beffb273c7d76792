"""``update_offsets`` asked on the driver."""

from __future__ import annotations

from dataclasses import replace

from headrace.connect.partition import SourcePartition
from headrace.connect.task import Offsets
from headrace.runtime.offset_desk import OffsetSnapshot
from headrace.runtime.running.idle_hook import idle_update
from headrace.testing.puppets import PolledPuppet, Puppet, puppet
from runtime.desk import SPEC


def test_each_task_is_asked_with_its_own_configuration() -> None:
    """Tasks of a polled connector have partitions of their own."""
    moves: list[Offsets] = [{SourcePartition(shelf=number): {"next": number}} for number in (0, 1)]
    for number, moved in enumerate(moves):
        puppet(f"shelf-{number}", Puppet(update=lambda _, moved=moved: moved))
    spec = replace(SPEC, connector=PolledPuppet())

    asked = idle_update(spec, OffsetSnapshot({}), [{"name": "shelf-0"}, {"name": "shelf-1"}])

    assert {**moves[0], **moves[1]} == asked
