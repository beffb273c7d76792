"""``update_offsets`` of tasks that have nothing to read, asked on the driver (KIP-910)."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from headrace.connect.partition import OffsetReader
from headrace.connect.task import Offsets, SourceTask, Split, TransactionContext
from headrace.runtime.offset_desk import OffsetSnapshot
from headrace.runtime.services import RunSpec
from headrace.slot.boundary import BoundaryRequests
from headrace.slot.pending import changed, checked_update, raise_failed_update, read_only
from headrace.slot.work import BoundaryKind

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class IdleContext:
    """A ``TaskContext`` of a task that is only asked, never polled."""

    connector: str
    offsets: OffsetReader
    task: int
    transaction: TransactionContext | None = None
    splits: tuple[Split, ...] = ()

    def stopping(self) -> bool:
        """Never: the task is asked one question."""
        return False


def idle_updates(
    spec: RunSpec, offsets: OffsetSnapshot, configs: Sequence[Mapping[str, str]]
) -> Mapping[int, Offsets]:
    """What each of the connector's tasks moves while nothing is read; without those that move nothing.

    There is one task for each of *configs*. It is started and stopped for it, unless it does not override the
    hook. Where the connector places the ends of transactions, it is asked only if it asks for one while it is
    started. What *offsets* have already is left out. What the hook raises is raised with exactly-once, and
    logged without.
    """
    if spec.connector.task_class.update_offsets is SourceTask.update_offsets:
        return {}
    updates: dict[int, Offsets] = {}
    for task, config in enumerate(configs):
        requests = BoundaryRequests() if spec.boundary is BoundaryKind.CONNECTOR else None
        context = IdleContext(connector=spec.name, offsets=offsets, task=task, transaction=requests)
        asked = _asked(spec, context, config, requests)
        moved = changed(asked, offsets.offsets(asked))
        if moved:
            updates[task] = moved
    return updates


def _asked(
    spec: RunSpec,
    context: IdleContext,
    config: Mapping[str, str],
    requests: BoundaryRequests | None,
) -> Offsets:
    task = spec.connector.task_class()
    task.initialize(context)
    try:
        task.start(config)
        return _update(spec, task) if requests is None or requests.take_any() else {}
    finally:
        task.stop()


def _update(spec: RunSpec, task: SourceTask) -> Offsets:
    try:
        return checked_update(task.update_offsets(read_only({})))
    except Exception as error:  # noqa: BLE001 (raised again, or told and tried again)
        if spec.exactly_once:
            raise_failed_update(error)
        _log.exception("update_offsets of %s raised; it is asked again later", spec.name)
        return {}
