"""Checks a connector's plan before any slot gets it; pure."""

from __future__ import annotations

import json

from headrace.connect.connector import Plan
from headrace.connect.errors import TaskFailedError
from headrace.connect.partition import SourcePartition
from headrace.connect.task import Split


def checked(plan: Plan, *, connector: str, slots: int) -> Plan:
    """*plan*, if it is one that keeps "one source partition, one owner".

    Raises :class:`~headrace.connect.errors.TaskFailedError` naming the connector and the partition.
    """
    if len(plan.shares) > slots:
        raise TaskFailedError(
            f"Connector {connector} planned {len(plan.shares)} tasks, but it may have at most {slots}."
        )
    if plan.ask_again_after is not None and not plan.ask_again_after > 0:
        raise TaskFailedError(
            f"Connector {connector} wants to be asked again after {plan.ask_again_after} seconds, which is "
            "no time to wait. Give more than 0, or None."
        )
    owners: dict[SourcePartition, int] = {}
    for task, share in enumerate(plan.shares):
        for split in share:
            if split.partition in owners:
                raise TaskFailedError(
                    f"Connector {connector} planned {dict(split.partition)} twice (tasks "
                    f"{owners[split.partition]} and {task}); a source partition belongs to one slot."
                )
            owners[split.partition] = task
            _refuse_what_cannot_travel(split, connector)
    both = owners.keys() & plan.offsets.keys()
    if both:
        raise TaskFailedError(
            f"Connector {connector} planned to read {dict(next(iter(both)))} and to change its offset, "
            "which are two owners."
        )
    return plan


def _refuse_what_cannot_travel(split: Split, connector: str) -> None:
    try:
        json.dumps([dict(split.partition), dict(split.offset or {}), dict(split.details)])
    except (TypeError, ValueError) as error:
        raise TaskFailedError(
            f"Connector {connector} planned a split that cannot be sent to its task: {error}. "
            "Bytes come back from the store as base64 text: use text, too."
        ) from error
