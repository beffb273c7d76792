"""The connector of :mod:`end_to_end.dying_commits` as a planned one, with a SQL step behind it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Final

from end_to_end.commit_model import MAIN, ROWS, SIDE
from end_to_end.dying_commits import GROUPS, DyingTask, NoSettings
from headrace.connect.config import Config
from headrace.connect.connector import ExactlyOnceSupport, Plan, PlannedConnector, PlanRequest
from headrace.connect.partition import SourcePartition
from headrace.connect.task import Offsets, Split

SQL: Final[Mapping[str, str]] = {
    "transforms": "sql",
    "transforms.sql.type": "headrace.transforms.SparkSql",
    "transforms.sql.where": "value RLIKE 'side|[0-4]$'",
}
_MAIN, _SIDE = SourcePartition(source=MAIN), SourcePartition(source=SIDE)


def selected(values: list[str]) -> list[str]:
    """What the step leaves of *values*: in some groups not the last record, which the offset is of."""
    return [each for each in values if each.startswith("side") or each[-1] in "01234"]


class PlannedTask(DyingTask):
    """Where it has got to is known by the instance that polls, and told to the one that commits by its offsets."""

    def update_offsets(self, offsets: Offsets) -> Offsets | None:
        """What the cell says; nothing on the driver, while nothing is read."""
        committing = offsets.get(_MAIN)
        if committing is None:
            return None
        self._group = int(str(committing["next"])) // ROWS
        return super().update_offsets(offsets)


class PlannedCommits(PlannedConnector):
    """Both sources as the work of one slot, until all groups are read."""

    config_class: ClassVar[type[Config]] = NoSettings
    task_class: ClassVar[type[PlannedTask]] = PlannedTask

    def start(self, props: Mapping[str, str]) -> None:
        """See :class:`~headrace.connect.connector.SourceConnector`."""
        self._groups = int(props[GROUPS])

    def plan(self, request: PlanRequest) -> Plan:
        """One share, or none."""
        stored = request.offsets.offset(_MAIN)
        if stored is not None and stored["next"] == ROWS * self._groups:
            return Plan()
        share = [
            Split(partition=each, offset=request.offsets.offset(each)) for each in (_MAIN, _SIDE)
        ]
        return Plan(shares=[share])

    def exactly_once_support(self, props: Mapping[str, str]) -> ExactlyOnceSupport:
        """Always."""
        return ExactlyOnceSupport.SUPPORTED

    def can_define_transaction_boundaries(self, props: Mapping[str, str]) -> bool:
        """Always."""
        return True
