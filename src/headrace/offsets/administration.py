"""Reads and changes connectors' offsets on request (KIP-875, KIP-995), with a history and undo."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from functools import partial

from headrace.connect.errors import (
    ConnectError,
    ConnectorFencedError,
    ReplanError,
    RetriableError,
)
from headrace.herder.answers import ConnectorOffset, PartitionLag
from headrace.herder.errors import NotFoundError, ServerError
from headrace.herder.requests import REQUEST_SECONDS, OffsetChange
from headrace.observe.secret_masking import without_secrets
from headrace.offsets.alteration import (
    Change,
    ChangeMaker,
    CreationStep,
    Difference,
    Known,
    OffsetWriter,
    Wanted,
    are_stored,
    creation_step,
    difference,
)
from headrace.offsets.codec import json_text
from headrace.offsets.connector_stores import OffsetsOwner
from headrace.offsets.history import listed, refuse_undo, undoable
from headrace.offsets.validation import OffsetHooks, initial_offsets_of, offsets_to_alter, verdict
from headrace.runtime.services import RunSpec, Services
from headrace.storage.protocols import (
    ChangeStore,
    HistoryEntry,
    Operation,
    Retention,
    StoredConnector,
)

_log = logging.getLogger(__name__)
_DONE = {
    Operation.ALTER: "altered",
    Operation.RESET: "reset",
    Operation.CREATE: "set",
    Operation.UNDO: "restored",
}


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


class OffsetChanges:
    """Reads, alters, resets, presets and restores the offsets of a worker's connectors.

    Called by the herder from any thread, for one connector by one thread at a time, and for changes only
    while nothing of that connector runs; the herder checks that it exists and is STOPPED. The *spec* of a
    change holds a fresh connector, which cannot be used again. Calls block on Kafka. Each raises
    :class:`~headrace.herder.errors.RequestError` with Kafka Connect's message, and then has changed
    nothing, unless it says otherwise. A *dry_run* writes nothing, fences no one and does not call
    ``alter_offsets``; it answers what would change and what the connector says about it.
    """

    def __init__(
        self,
        services: Services,
        store: ChangeStore,
        *,
        keep: Retention | None = None,
        hook_seconds: float = REQUEST_SECONDS,
        now_ms: Callable[[], int] = _now_ms,
    ) -> None:
        self._services = services
        self._store = store
        self._keep = keep or Retention()
        self._hook_seconds = hook_seconds
        self._now_ms = now_ms

    def read(self, connector: OffsetsOwner) -> Sequence[ConnectorOffset]:
        """The committed offsets of *connector*; works in every state, and for names without a connector."""
        try:
            known = self._services.offsets.of(connector).current().known()
        except ConnectError as error:
            failure = f"Failed to retrieve offsets for source connector {connector.name}: {error}"
            _log.error("%s", failure)
            raise ServerError(failure) from error
        return [
            ConnectorOffset(partition=partition, offset=offset)
            for partition, offset in known.items()
        ]

    def history(self, name: str) -> Sequence[HistoryEntry]:
        """The changes of the offsets of *name*, the newest first; also of a deleted connector."""
        return self._store.entries(name)

    def alter(
        self,
        spec: RunSpec,
        changes: Sequence[OffsetChange],
        *,
        who: str | None,
        dry_run: bool = False,
    ) -> str:
        """Change the offsets that *changes* name, and leave the others; returns the sentence of success."""
        offsets = offsets_to_alter(changes)
        hooks = self._hooks(spec)
        hooks.validate(offsets)
        hooks.check(offsets)
        change = Change(
            operation=Operation.ALTER,
            who=who,
            wanted=lambda known: Wanted(store=offsets, ask=offsets, visible=known),
        )
        return self._made(spec, hooks, change, dry_run=dry_run)

    def reset(self, spec: RunSpec, *, who: str | None, dry_run: bool = False) -> str:
        """Delete all offsets; returns the sentence of success. May be repeated."""
        hooks = self._hooks(spec)

        def nothing_left(known: Known) -> Wanted:
            offsets = dict.fromkeys(known)
            hooks.validate(offsets)
            return Wanted(store=offsets, ask=offsets, visible=known)

        change = Change(operation=Operation.RESET, who=who, wanted=nothing_left)
        return self._made(spec, hooks, change, dry_run=dry_run)

    def create(
        self,
        spec: RunSpec,
        stored: StoredConnector,
        initial_offsets: Sequence[OffsetChange],
        *,
        who: str | None,
        dry_run: bool = False,
    ) -> str:
        """Steps 2 to 5 of a creation: preset the offsets and store *stored*; returns ``initial_offsets_response``.

        The caller has validated the configuration, holds the name, and starts the connector afterwards,
        with another *spec*. Errors name their step. Previous offsets of the name are wiped. When the
        configuration cannot be stored (step 5), the name has no offsets; the previous ones are in the history.
        """
        in_step = partial(creation_step, spec.name)
        hooks = self._hooks(spec)
        with in_step(CreationStep.VALIDATING_OFFSETS):
            offsets = initial_offsets_of(initial_offsets)
            hooks.validate(offsets)
        change = Change(
            operation=Operation.CREATE,
            who=who,
            wanted=lambda known: Wanted(store={**dict.fromkeys(known), **offsets}, ask=offsets),
            stored=stored,
            in_step=in_step,
        )
        return self._made(spec, hooks, change, dry_run=dry_run)

    def undo(
        self,
        spec: RunSpec,
        entry: int,
        *,
        who: str | None,
        force: bool = False,
        dry_run: bool = False,
    ) -> str:
        """Restore the offsets that the partitions of change *entry* had before it; returns the sentence of success.

        Refused without *force* when they have moved since, or the change is already undone. Always refused for
        changes that were never done, for creations, and for changes of an earlier connector of the same name. An
        undo is a change itself, which can be undone; if the offsets are already restored, nothing is changed, and
        the sentence says so.
        """
        entries = self._store.entries(spec.name)
        undone = undoable(spec.name, entry, entries)
        hooks = self._hooks(spec)

        def as_before(known: Known) -> Wanted | None:
            refuse_undo(undone, entries, known, force=force)
            if are_stored(known, undone.before):
                return None
            hooks.validate(undone.before)
            return Wanted(store=undone.before, ask=undone.before, visible=known)

        change = Change(operation=Operation.UNDO, who=who, wanted=as_before, undoes=undone.id)
        return self._made(spec, hooks, change, dry_run=dry_run) or unchanged(undone.id)

    def settle(self, spec: RunSpec) -> None:
        """Finish a change that failed and could not be undone then; nothing when there is none.

        Called on the run's thread before the connector starts; *spec* holds another instance of it. Every
        change of the same connector begins with this, too. Raises
        :class:`~headrace.connect.errors.RetriableError` for failures that may be temporary.
        """
        self._settle(spec, may_create=False)

    def open_changes(self) -> Sequence[str]:
        """The connectors that have a change which was begun and not finished, whether or not someone is at it."""
        return sorted({each.entry.connector for each in self._store.open_intents()})

    def recover(
        self,
        connectors: Mapping[str, StoredConnector],
        run_spec: Callable[[StoredConnector], RunSpec],
        *,
        only: str | None = None,
    ) -> Mapping[str, ConnectError]:
        """Finish changes that an earlier process has left unfinished, all or those of one connector; nothing may be at them.

        *connectors* are those that are stored, *run_spec* creates one, as the herder does. Returns the connectors whose changes could not be
        finished, with the error: these must not start.
        """
        failures = dict[str, ConnectError]()
        for intent in self._store.open_intents():
            name = intent.entry.connector
            if only not in (None, name):
                continue
            try:
                stored = connectors.get(name) or intent.stored
                if stored is None:
                    raise NotFoundError(f"Connector {name} not found")
                self._settle(run_spec(stored), may_create=name not in connectors)
            except ConnectError as error:
                failures[name] = error
        return failures

    def _settle(self, spec: RunSpec, *, may_create: bool) -> None:
        try:
            with closing(self._maker(spec, self._hooks(spec))) as maker:
                maker.settle(may_create=may_create)
        except ServerError as error:
            if isinstance(error.__cause__, RetriableError | ReplanError):
                raise RetriableError(str(error)) from error
            if isinstance(error.__cause__, ConnectorFencedError):
                raise error.__cause__ from error
            raise

    def _made(self, spec: RunSpec, hooks: OffsetHooks, change: Change, *, dry_run: bool) -> str:
        """Make the change; returns the sentence of success, empty if there was nothing to do."""
        if dry_run:
            return self._tried(spec, change)
        with closing(self._maker(spec, hooks)) as maker:
            handled = maker.make(change, now_ms=self._now_ms(), keep=self._keep)
        return "" if handled is None else success(change.operation, handled=handled)

    def _tried(self, spec: RunSpec, change: Change) -> str:
        writer = OffsetWriter(spec, self._services)
        with change.in_step(CreationStep.WIPING_OFFSETS):
            known = writer.known()
        wanted = change.wanted(known)
        if wanted is None:
            return ""
        with change.in_step(CreationStep.VALIDATING_OFFSETS):
            changing = difference(known, writer.as_stored(wanted.store))
        return preview(changing, verdict(spec.connector))

    def _hooks(self, spec: RunSpec) -> OffsetHooks:
        return OffsetHooks(spec, seconds=self._hook_seconds)

    def _maker(self, spec: RunSpec, hooks: OffsetHooks) -> ChangeMaker:
        return ChangeMaker(spec, self._services, self._store, hooks)


def success(operation: Operation, *, handled: bool) -> str:
    """Kafka Connect's sentence of success; *handled* is the answer of the connector's hook."""
    done = _DONE[operation]
    if handled:
        return f"The offsets for this connector have been {done} successfully"
    # The word "Connect" is in Kafka Connect's sentence, and not in KIP-995's for creations.
    framework = (
        "framework-managed" if operation is Operation.CREATE else "Connect framework-managed"
    )
    return (
        f"The {framework} offsets for this connector have been {done} successfully. However, if this "
        f"connector manages offsets externally, they will need to be manually {done} in the system that "
        "the connector uses."
    )


def unchanged(undone: int) -> str:
    """The answer to an undo of change *undone* that has nothing to restore."""
    return f"Nothing was changed: the offsets are already those from before change {undone}"


def preview(change: Difference, verdict: str) -> str:
    """The answer to a dry run."""
    if not change:
        return f"Dry run: no offset would change. {verdict}"
    lines = (
        f"{json_text(partition)} from {json_text(change.before[partition])} to {json_text(offset)}"
        for partition, offset in change.after.items()
    )
    return f"Dry run: these offsets would change: {listed(lines, len(change.after))}. {verdict}"


def partition_lags(spec: RunSpec, offsets: Sequence[ConnectorOffset]) -> Sequence[PartitionLag]:
    """Each of *offsets* with its lag; *spec* holds a fresh connector, which cannot be used again.

    Blocks while the connector examines its source. Raises :class:`~headrace.herder.errors.ServerError`
    when that fails.
    """
    known = {each.partition: each.offset for each in offsets}
    try:
        lags = spec.connector.lag(spec.props, known)
    except Exception as error:  # noqa: BLE001 (any error is an answer to the caller)
        failure = f"Failed to read the lag of source connector {spec.name}"
        # The text of other errors is not meant for clients.
        if isinstance(error, ConnectError):
            failure = f"{failure}: {spec.secrets.masked(str(error))}"
        cause = without_secrets(spec.secrets, error)
        _log.error("%s", failure, exc_info=cause)
        raise ServerError(failure) from cause
    return [
        PartitionLag(partition=partition, offset=offset, lag=lags.get(partition))
        for partition, offset in known.items()
    ]
