"""``update_offsets`` of a planned source that has nothing to read, asked on the driver (KIP-910)."""

from __future__ import annotations

import logging
from dataclasses import dataclass

from headrace.connect.partition import OffsetReader
from headrace.connect.task import Offsets, SourceTask, Split
from headrace.runtime.offset_desk import OffsetSnapshot
from headrace.runtime.services import RunSpec
from headrace.slot.pending import checked_update

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class IdleContext:
    """A ``TaskContext`` of a task that is only asked, never polled."""

    connector: str
    offsets: OffsetReader
    task: int = 0
    transaction: None = None
    splits: tuple[Split, ...] = ()

    def stopping(self) -> bool:
        """Never: the task is asked one question."""
        return False


def idle_update(spec: RunSpec, offsets: OffsetSnapshot) -> Offsets:
    """What the connector's task wants to move while nothing is read; empty when it does not care.

    The task is started and stopped for it, unless it does not override the hook. What the hook raises is
    raised with exactly-once, and logged without.
    """
    task_class = spec.connector.task_class
    if task_class.update_offsets is SourceTask.update_offsets:
        return {}
    task = task_class()
    task.initialize(IdleContext(connector=spec.name, offsets=offsets))
    task.start(spec.props)
    try:
        return checked_update(task.update_offsets({}))
    except Exception:
        if spec.exactly_once:
            raise
        _log.exception("update_offsets of %s raised; it is asked again later", spec.name)
        return {}
    finally:
        task.stop()
