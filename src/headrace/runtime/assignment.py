"""Which slot gets which work: checks a plan, and turns it, or task configurations, into the work of each slot; pure."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from headrace.connect.connector import Plan, SourceConnector
from headrace.connect.errors import PartitionError, TaskFailedError
from headrace.connect.partition import SourcePartition
from headrace.connect.task import Split
from headrace.kafka.client_config import producer_config
from headrace.runtime.fencing import transactional_id
from headrace.runtime.services import RunSpec, Timing
from headrace.task.slot_work import SlotWork

# One beat until the slot receives the request, another to abort and report.
_REPORT_DELAY_SECONDS = 2.0

_DISALLOWED = (
    "This behaviour should be considered a bug and is disallowed. If necessary, it can be permitted by "
    "reconfiguring the connector with 'tasks.max.enforce' set to false; however, this option will be removed "
    "in a future release of Kafka Connect."
)


def checked_plan(
    plan: Plan,
    *,
    connector: str,
    slots: int,
    failed: Mapping[SourcePartition, PartitionError] | None = None,
) -> Plan:
    """*plan*, if it gives each source partition one owner, and none to those that have just *failed*.

    Raises :class:`~headrace.connect.errors.TaskFailedError` naming the connector and the partition.
    """
    if len(plan.shares) > slots:
        raise TaskFailedError(
            f"Connector {connector} planned {len(plan.shares)} tasks, but it may have at most {slots}."
        )
    if plan.ask_again_after is not None and not plan.ask_again_after > 0:
        raise TaskFailedError(
            f"Connector {connector} returned a plan with ask_again_after={plan.ask_again_after}: return more than 0 "
            "seconds, or None."
        )
    owners: dict[SourcePartition, int] = {}
    for task, share in enumerate(plan.shares):
        for split in share:
            if split.partition in owners:
                raise TaskFailedError(
                    f"Connector {connector} planned {dict(split.partition)} twice (tasks "
                    f"{owners[split.partition]} and {task}); a source partition belongs to one slot."
                )
            if failed and split.partition in failed:
                raise failed[split.partition]
            owners[split.partition] = task
            _refuse_unserialisable(split, connector)
    both = owners.keys() & plan.offsets.keys()
    if both:
        raise TaskFailedError(
            f"Connector {connector} planned to read {dict(next(iter(both)))} and to change its offset: "
            "a plan may do only one of the two."
        )
    return plan


def _refuse_unserialisable(split: Split, connector: str) -> None:
    try:
        json.dumps([dict(split.partition), dict(split.offset or {}), dict(split.details)])
    except (TypeError, ValueError) as error:
        raise TaskFailedError(
            f"Connector {connector} planned a split that cannot be sent to its task: {error}. "
            "Bytes are read back from the store as base64 text, so use text in splits as well."
        ) from error


def planned_works(spec: RunSpec, plan: Plan, *, group_id: str, timing: Timing) -> list[SlotWork]:
    """The work of one slot per non-empty share."""
    shares = [share for share in plan.shares if share]
    return [
        _work(
            spec,
            task,
            group_id=group_id,
            timing=timing,
            config=spec.props,
            splits=share,
            planned=True,
            followed=plan.followed,
        )
        for task, share in enumerate(shares)
    ]


def polled_works(spec: RunSpec, *, group_id: str, timing: Timing, once: bool) -> list[SlotWork]:
    """The work of one slot per task configuration; raises when there are more than ``tasks.max`` (KIP-1004)."""
    configs = spec.connector.task_configs(spec.max_tasks)
    too_many = too_many_tasks(spec, len(configs))
    if too_many and spec.enforces_max_tasks:
        raise TaskFailedError(f"{too_many} {_DISALLOWED}")
    return [
        _work(
            spec,
            task,
            group_id=group_id,
            timing=timing,
            config=config,
            splits=(),
            planned=False,
            once=once,
        )
        for task, config in enumerate(configs)
    ]


def too_many_tasks(spec: RunSpec, tasks: int) -> str | None:
    """The message that *tasks* are more than ``tasks.max``, or ``None``."""
    if tasks <= spec.max_tasks:
        return None
    return (
        f"The connector {spec.name} has generated {tasks} tasks, which is greater than "
        f"{spec.max_tasks}, the maximum number of tasks it is configured to create."
    )


def check_room(connector: str, tasks: int, *, slots: int) -> None:
    """Raise for a polled connector with more tasks than slots: it could never run, as its tasks poll concurrently."""
    if tasks > slots:
        raise TaskFailedError(
            f"Connector {connector} has {tasks} polled tasks, but this worker has {slots} slots: "
            "raise headrace.slots or lower tasks.max."
        )


def _slot_grace(seconds: float) -> float:
    """The part of the driver's grace period that a slot may use: it is notified late, and has to abort and report."""
    return max(seconds / 2, seconds - _REPORT_DELAY_SECONDS)


def task_path(connector: SourceConnector) -> str:
    """The path under which a slot imports the connector's task class."""
    return f"{connector.task_class.__module__}:{connector.task_class.__qualname__}"


def _work(  # noqa: PLR0913 - the two callers above are its only readers
    spec: RunSpec,
    task: int,
    *,
    group_id: str,
    timing: Timing,
    config: Mapping[str, str],
    splits: Sequence[Split],
    planned: bool,
    once: bool = False,
    followed: bool = False,
) -> SlotWork:
    return SlotWork(
        spec=spec,
        task=task,
        task_class=task_path(spec.connector),
        config=dict(config),
        planned=planned,
        splits=tuple(splits),
        transactional_id=transactional_id(group_id, spec.name, task) if spec.exactly_once else None,
        lease_seconds=timing.lease,
        grace_seconds=_slot_grace(timing.grace),
        transaction_seconds=producer_config(spec.producer).transaction_timeout_seconds,
        linger_seconds=None if planned else timing.linger,
        once=once,
        followed=followed,
    )
