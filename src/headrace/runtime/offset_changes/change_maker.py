"""One change of offsets, while it is made: fence, ask the connector, note it, write, store; in this order."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

from headrace.connect.errors import ConnectError
from headrace.connect.task import Offsets
from headrace.runtime.offset_changes.creation import CreationStep, InStep, no_step
from headrace.runtime.offset_changes.difference import Difference, Known, difference
from headrace.runtime.offset_changes.hooks import OffsetHooks
from headrace.runtime.offset_changes.settlement import settlement
from headrace.runtime.offset_changes.writer import OffsetWriter
from headrace.runtime.services import RunSpec, Services
from headrace.storage.changes import ChangeStore, HistoryEntry, Intent, Operation, Phase, Retention
from headrace.storage.protocols import StoredConnector

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What is to be stored, and what the connector is asked about; they differ for creations, which wipe."""

    store: Offsets
    ask: Offsets
    visible: Known = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """A change that somebody asks for. *wanted* says what it comes to once the offsets are known.

    That is ``None`` when they are so already; the connector is not asked then.

    *stored* is the connector that a creation stores, *in_step* tells its errors.
    """

    operation: Operation
    who: str | None
    wanted: Callable[[Known], Wanted | None]
    stored: StoredConnector | None = None
    undoes: int | None = None
    in_step: InStep = no_step


class ChangeMaker:
    """Makes and settles changes of one connector; used by one thread at a time."""

    def __init__(
        self, spec: RunSpec, services: Services, store: ChangeStore, hooks: OffsetHooks
    ) -> None:
        self._name = spec.name
        self._worker_offsets = services.offsets.worker
        self._store = store
        self._hooks = hooks
        self._writer = OffsetWriter(spec, services)

    def make(self, change: Change, *, now_ms: int, keep: Retention) -> bool | None:
        """Make *change*, all of it or nothing; what the connector's hook answered, ``None`` if there was nothing to do.

        Raises :class:`~headrace.runtime.herder.errors.RequestError`; then nothing has changed, as far as
        the stores can be reached, or a creation that failed at its last step has left no offsets.
        """
        step = change.in_step
        with step(CreationStep.WIPING_OFFSETS):
            self.settle()
            self._writer.fence()
            known = self._writer.known()
            wanted = change.wanted(known)
        if wanted is None:
            self._writer.let_go()
            return None
        with step(CreationStep.VALIDATING_OFFSETS):
            handled = self._hooks.alter(wanted.ask, wanted.visible)
        changing = difference(known, wanted.store)
        if changing or change.stored is not None:
            with step(CreationStep.WIPING_OFFSETS), self._writer.storing():
                intent = self._store.begin(_intent(self._name, change, changing, now_ms), keep)
            with step(CreationStep.SETTING_OFFSETS):
                self._write(intent)
            with step(CreationStep.WRITING_CONFIG):
                self._finish(intent)
        self._writer.let_go()
        return handled

    def settle(self, *, may_create: bool = False) -> None:
        """Bring a change that was interrupted to its end, if there is one.

        A creation is finished only by whoever *may_create*: later than that, its name may be another
        connector's, and it is taken back.
        """
        with self._writer.storing():
            found = self._store.open_intents()
        for intent in found:
            if intent.entry.connector == self._name:
                self._settle(intent if may_create else self._without_creating(intent))

    def _without_creating(self, intent: Intent) -> Intent:
        if intent.stored is None or intent.phase is not Phase.WRITING:
            return intent
        with self._writer.storing():
            return self._store.move(intent, Phase.UNDOING)

    def _settle(self, intent: Intent) -> None:
        self._writer.fence()
        way = settlement(intent, self._writer.known())
        if way.write:
            self._writer.write(way.write)
        with self._writer.storing():
            if way.is_done:
                self._store.finish(intent)
            else:
                self._store.abandon(intent)
        self._writer.let_go()
        _log.warning(
            "Connector %s: change %d of its offsets was interrupted; it is %s now.",
            self._name,
            intent.entry.id,
            "done" if way.is_done else "undone",
        )

    def _write(self, intent: Intent) -> None:
        if self._writer.is_local or not intent.entry.after:
            return
        try:
            self._writer.write(intent.entry.after)
        except ConnectError:
            self._back_out(intent, Phase.UNDOING)
            raise

    def _finish(self, intent: Intent) -> None:
        try:
            with self._writer.storing():
                if self._writer.is_local:
                    finish = partial(self._store.finish, intent)
                    self._worker_offsets.change(self._name, intent.entry.after, finish)
                else:
                    self._store.finish(intent)
        except ConnectError:
            wipe = intent.stored is not None and not self._writer.is_local
            self._back_out(intent, Phase.WIPING if wipe else Phase.UNDOING)
            raise

    def _back_out(self, intent: Intent, phase: Phase) -> None:
        try:
            self._settle(self._store.move(intent, phase))
        except ConnectError:
            _log.exception(
                "Connector %s: change %d of its offsets failed, and could not be taken back yet. That is "
                "tried again before the connector starts or changes, and when the worker starts.",
                self._name,
                intent.entry.id,
            )


def _intent(name: str, change: Change, changing: Difference, now_ms: int) -> Intent:
    return Intent(
        entry=HistoryEntry(
            connector=name,
            operation=change.operation,
            who=change.who,
            at_ms=now_ms,
            before=changing.before,
            after=changing.after,
            undoes=change.undoes,
        ),
        stored=change.stored,
    )
