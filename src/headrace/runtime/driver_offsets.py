"""Offsets that change without records while no slot runs: what idle tasks move (KIP-910), and how the driver commits it."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from headrace.connect.partition import OffsetReader
from headrace.connect.task import Offsets, SourceTask, Split, TransactionContext
from headrace.kafka.client_config import producer_config
from headrace.kafka.client_sender import make_sender
from headrace.kafka.sender import OffsetEntry, Sender
from headrace.offsets.connector_stores import ConnectorOffsetStores
from headrace.offsets.store import OffsetSnapshot
from headrace.offsets.target import OffsetTopic
from headrace.runtime.fencing import PATIENCE_SECONDS, transactional_id
from headrace.runtime.services import RunSpec
from headrace.task.connector_spec import BoundaryKind
from headrace.task.offset_updates import changed, checked_update, raise_failed_update, read_only
from headrace.task.transaction_boundary import BoundaryRequests

_log = logging.getLogger(__name__)

StillOurs = Callable[[], None]
"""Raises when the connector has another driver by now, or the offsets have changed since they were planned from."""


@dataclass(frozen=True, slots=True, kw_only=True)
class IdleContext:
    """A ``TaskContext`` of a task that is only asked for ``update_offsets``, never polled."""

    connector: str
    offsets: OffsetReader
    task: int
    transaction: TransactionContext | None = None
    splits: tuple[Split, ...] = ()

    def stopping(self) -> bool:
        """Always ``False``: the task gets only one call."""
        return False


def idle_updates(
    spec: RunSpec, offsets: OffsetSnapshot, configs: Sequence[Mapping[str, str]]
) -> Mapping[int, Offsets]:
    """The offsets that each of the connector's tasks moves while nothing is read; tasks that move none are left out.

    There is one task for each of *configs*. It is started and stopped for the call, unless its class does not
    override the hook. If the connector defines the transaction boundaries, the hook is called only if the task
    requests a boundary while it is started. Values that *offsets* has already are left out. An exception of the
    hook is raised with exactly-once, and logged otherwise.
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
    except Exception as error:  # noqa: BLE001 (raised again, or logged and retried)
        if spec.exactly_once:
            raise_failed_update(error)
        _log.exception("update_offsets of %s raised; it is called again later", spec.name)
        return {}


class DriverOffsetCommitter:
    """Commits offsets without records, as the slot of task 0 would; called while no slot runs."""

    def __init__(self, stores: ConnectorOffsetStores, group_id: str) -> None:
        self._stores = stores
        self._group_id = group_id

    def commit(self, spec: RunSpec, offsets: Offsets, still_ours: StillOurs) -> None:
        """Commit *offsets* of the connector, all of them or none; ``None`` removes.

        Offsets of the same partitions that others stored under differently encoded keys are removed with it. In a
        transaction, *still_ours* is called after the id was initialised, which fences older writers, and before
        anything is written.
        """
        stored = self._stores.of(spec)
        if not isinstance(spec.offsets, OffsetTopic) or not spec.exactly_once:
            stored.put(offsets)
        else:
            topic = spec.offsets.name
            stored.commit(
                offsets, lambda entries: self._in_transaction(spec, topic, entries, still_ours)
            )

    def _in_transaction(
        self, spec: RunSpec, topic: str, entries: Sequence[OffsetEntry], still_ours: StillOurs
    ) -> None:
        sender = make_sender(
            producer_config(
                spec.producer, transactional_id=transactional_id(self._group_id, spec.name, 0)
            ),
            owner=f"connector {spec.name}",
            open_seconds=PATIENCE_SECONDS,
        )
        try:
            sender.open()
            still_ours()
            commit_entries(sender, topic, entries)
        finally:
            sender.close()


def commit_entries(sender: Sender, topic: str, entries: Sequence[OffsetEntry]) -> None:
    """Commit *entries* of *topic* in a transaction of their own."""
    sender.begin()
    sender.send_offsets(topic, entries)
    sender.commit()
