"""Connectors of which a leader of Kafka Connect has given only a part to this worker, as their statuses show them."""

from __future__ import annotations

from collections.abc import Mapping

from headrace.herder.answers import State
from headrace.herder.group_protocol import ITSELF
from headrace.herder.services import LocalServices
from headrace.herder.statuses import HerderStatuses


class IncompleteConnectors:
    """Writes of each such part that it is FAILED, and why. Used by the herder's thread."""

    def __init__(self, local: LocalServices) -> None:
        self._local = local
        self._statuses = HerderStatuses(local)
        self._shown: dict[str, frozenset[int]] = {}

    def show(self, parts: Mapping[str, frozenset[int]]) -> None:
        """These are here now, by connector, and no others; -1 is the connector itself."""
        for name in self._shown.keys() - parts.keys():
            self.hide(name)
        for name, tasks in parts.items():
            if self._local.configs.connector(name) is None:
                # It was deleted, and is about to be taken away.
                continue
            self._unassign(name, self._shown.get(name, frozenset()) - tasks)
            for task in sorted(tasks):
                self._statuses.put(
                    name, State.FAILED, task=_number(task), trace=_sentence(name, task)
                )
            self._shown[name] = tasks

    def hide(self, name: str) -> None:
        """Nothing of the connector is here any more, or all of it."""
        self._unassign(name, self._shown.pop(name, frozenset()))

    def _unassign(self, name: str, tasks: frozenset[int]) -> None:
        # One that was deleted has no status any more.
        if self._local.configs.connector(name) is not None:
            for task in sorted(tasks):
                self._statuses.put(name, State.UNASSIGNED, task=_number(task))


def _number(task: int) -> int | None:
    return None if task == ITSELF else task


def _sentence(name: str, task: int) -> str:
    given = (
        f"Connector {name} was assigned to this worker without all of its tasks"
        if task == ITSELF
        else f"Task {task} of connector {name} was assigned to this worker without the connector and all of its other tasks"
    )
    return (
        f"{given}, and headrace runs a connector with all its tasks on one worker. Workers of Kafka Connect in the group "
        "(headrace.group.mixed) have its leader divide them one by one: use tasks.max=1, or stop these workers."
    )
