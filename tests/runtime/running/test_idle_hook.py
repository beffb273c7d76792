"""``update_offsets`` asked on the driver."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import ClassVar

import pytest

from headrace.connect.partition import SourcePartition
from headrace.connect.task import Offsets, SourceTask
from headrace.runtime.offset_desk import OffsetSnapshot
from headrace.runtime.running.idle_hook import idle_update
from headrace.testing.puppets import PolledPuppet, Puppet, PuppetTask, puppet
from runtime.desk import SPEC


def test_each_task_is_asked_with_its_own_configuration() -> None:
    """Tasks of a polled connector have partitions of their own."""
    moves: list[Offsets] = [{SourcePartition(shelf=number): {"next": number}} for number in (0, 1)]
    for number, moved in enumerate(moves):
        puppet(f"shelf-{number}", Puppet(update=lambda _, moved=moved: moved))
    spec = replace(SPEC, connector=PolledPuppet())

    asked = idle_update(spec, OffsetSnapshot({}), [{"name": "shelf-0"}, {"name": "shelf-1"}])

    assert {**moves[0], **moves[1]} == asked


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
        idle_update(replace(SPEC, connector=LockedConnector()), OffsetSnapshot({}), [{"name": "c"}])

    assert ["stopped"] == stops
