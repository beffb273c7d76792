"""How a change of offsets is made: fence, ask the connector, record the change, write; and how an interrupted one is finished."""

from __future__ import annotations

import copy
import logging
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from enum import Enum
from functools import partial

from headrace.connect.errors import (
    ConnectError,
    ConnectorFencedError,
    OffsetsError,
    RetriableError,
)
from headrace.connect.partition import SourceOffset, SourcePartition
from headrace.connect.task import Offsets
from headrace.herder.errors import BadRequestError, RequestError, ServerError
from headrace.offsets.codec import encoded_value
from headrace.offsets.store import OffsetSnapshot
from headrace.offsets.target import DriverStore
from headrace.offsets.validation import OffsetHooks
from headrace.runtime.fencing import Ownership
from headrace.runtime.services import RunSpec, Services
from headrace.storage.protocols import (
    ChangeStore,
    HistoryEntry,
    Intent,
    Operation,
    Phase,
    Retention,
    StoredConnector,
)

_log = logging.getLogger(__name__)

Known = Mapping[SourcePartition, SourceOffset]
"""All offsets of a connector that are stored now."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """The partitions that change, with their offsets before and after; ``None`` for no offset."""

    before: Offsets
    after: Offsets

    def __bool__(self) -> bool:
        return bool(self.after)


def difference(known: Known, wanted: Offsets) -> Difference:
    """What changes when *wanted* is stored; partitions that do not change are left out."""
    changing = list(_unlike(known, wanted))
    return Difference(
        before={partition: known.get(partition) for partition in changing},
        after={partition: wanted[partition] for partition in changing},
    )


def are_stored(known: Known, offsets: Offsets) -> bool:
    """Whether *offsets* are stored, whatever other offsets there are."""
    return next(_unlike(known, offsets), None) is None


def _unlike(known: Known, wanted: Offsets) -> Iterator[SourcePartition]:
    # Compared by their bytes: in Python, True equals 1 and 1.0.
    return (
        partition
        for partition, offset in wanted.items()
        if _bytes(known.get(partition)) != _bytes(offset)
    )


def _bytes(offset: SourceOffset | None) -> bytes | None:
    return None if offset is None else encoded_value(offset)


class OffsetWriter:
    """Reads and writes the offsets of one connector for one change; used by the thread that makes it.

    Every method raises :class:`~headrace.herder.errors.ServerError`, whose cause is the original error.
    """

    def __init__(self, spec: RunSpec, services: Services) -> None:
        self._spec = spec
        self._services = services
        self._ownership = Ownership(spec, services)
        self._read = OffsetSnapshot({})

    @property
    def is_local(self) -> bool:
        """Whether the offsets are in the same storage as the history of their changes."""
        return isinstance(self._spec.offsets, DriverStore)

    def fence(self) -> None:
        """Fence every process that may still write for the connector."""
        failed = "Failed to perform zombie fencing for source connector prior to modifying offsets"
        with self._server_errors(late=failed, failed=failed):
            self._ownership.fence(give_up=lambda: False)

    def known(self) -> Known:
        """All offsets that are committed now."""
        late = (
            "Timed out while trying to read to the end of the offsets topic prior to modifying offsets "
            f"for source connector {self._spec.name}"
        )
        with self._server_errors(late=late, failed=self._failed):
            self._read = self._services.offsets.of(self._spec).current()
            return self._read.known()

    def as_stored(self, offsets: Offsets) -> Offsets:
        """*offsets* as :meth:`known` has them once they are committed.

        Raises :class:`~headrace.herder.errors.BadRequestError` for what cannot be stored.
        """
        with self._server_errors(late=self._failed, failed=self._failed):
            try:
                return self._services.offsets.of(self._spec).as_stored(offsets)
            except OffsetsError as error:
                raise BadRequestError(self._spec.secrets.masked(str(error))) from error

    def write(self, offsets: Offsets) -> None:
        """Commit *offsets*, which were derived from :meth:`known`: all or none if there are transactions."""
        late = (
            "Timed out while attempting to modify offsets for source connector " + self._spec.name
        )
        with self._server_errors(late=late, failed=self._failed):
            self._ownership.commit(offsets, planned_from=self._read)

    @contextmanager
    def storing(self) -> Generator[None]:
        """For writes to the worker's own storage."""
        with self._server_errors(late=self._failed, failed=self._failed):
            yield

    def release(self) -> None:
        """Record that nothing writes for the connector now. When that fails, the next start fences."""
        try:
            self._ownership.release()
        except ConnectError:
            _log.exception(
                "Connector %s: it could not be recorded that nothing writes its offsets now. Its next start fences.",
                self._spec.name,
            )

    def close(self) -> None:
        """Close the connections to Kafka."""
        self._ownership.close()

    @property
    def _failed(self) -> str:
        return f"Failed to modify offsets for source connector {self._spec.name}"

    @contextmanager
    def _server_errors(self, *, late: str, failed: str) -> Generator[None]:
        try:
            yield
        except RequestError:
            raise
        except RetriableError as error:
            raise self._server_error(late, error) from error
        except Exception as error:
            raise self._server_error(failed, error) from error

    def _server_error(self, sentence: str, error: Exception) -> ServerError:
        cause = self._spec.secrets.masked(str(error))
        _log.error("%s: %s", sentence, cause)
        # Kafka Connect's sentence does not say why. The text of other errors is not meant for clients.
        return ServerError(f"{sentence}: {cause}" if isinstance(error, ConnectError) else sentence)


@dataclass(frozen=True, slots=True, kw_only=True)
class Settlement:
    """What is left to do: *write*, if not empty; then the change is done, or abandoned."""

    is_done: bool
    write: Offsets = field(default_factory=dict)


def settlement(intent: Intent, known: Known) -> Settlement:
    """How to finish *intent*, whose connector has the offsets *known*, read after every writer was fenced.

    A change that was being written is done if the store has all of it. Otherwise the part of it that the store
    still has is reverted: without transactions, only a part may have been written. Partitions with other offsets
    were not written, or another worker has written them since; they are left alone, because its work must not be
    repeated.
    """
    entry = intent.entry
    if intent.phase is Phase.WRITING and are_stored(known, entry.after):
        return Settlement(is_done=True)
    written = [each for each, offset in entry.after.items() if are_stored(known, {each: offset})]
    is_wiped = intent.phase is Phase.WIPING
    target = {each: None if is_wiped else entry.before[each] for each in written}
    return Settlement(is_done=False, write=difference(known, target).after)


class CreationStep(Enum):
    """A step's number and what it does."""

    VALIDATING_CONFIG = (1, "validating the config")
    VALIDATING_OFFSETS = (2, "validating the offsets")
    WIPING_OFFSETS = (3, "wiping existing offsets")
    SETTING_OFFSETS = (4, "setting the initial offsets")
    WRITING_CONFIG = (5, "writing the config")


InStep = Callable[[CreationStep], AbstractContextManager[None]]
"""Adds the step to errors that happen in it."""


@contextmanager
def creation_step(connector: str, step: CreationStep) -> Generator[None]:
    """Add to every request error in the block that it happened in *step* of creating *connector*.

    Its status and text are kept. Called by the herder for step 1, and by the change of offsets for the others;
    only for creations with offsets.
    """
    try:
        yield
    except RequestError as error:
        raise error_in_step(error, connector, step) from error


def error_in_step(error: RequestError, connector: str, step: CreationStep) -> RequestError:
    """*error* with the step in which creating *connector* failed."""
    number, doing = step.value
    extended = copy.copy(error)
    extended.args = (f"{error} (creating connector {connector} failed at step {number}: {doing})",)
    return extended


def without_step(_: CreationStep) -> AbstractContextManager[None]:
    """For changes other than creations: errors are left as they are."""
    return nullcontext()


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What is to be stored, and what the connector is asked about; they differ for creations, which wipe offsets."""

    store: Offsets
    ask: Offsets
    visible: Known = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """A requested change. *wanted* computes what to store from the current offsets.

    It returns ``None`` when there is nothing to change; then the connector is not asked.

    *stored* is the connector that a creation stores, *in_step* adds the step to its errors.
    """

    operation: Operation
    who: str | None
    wanted: Callable[[Known], Wanted | None]
    stored: StoredConnector | None = None
    undoes: int | None = None
    in_step: InStep = without_step


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
        """Make *change*, all of it or nothing; returns the hook's answer, ``None`` if there was nothing to do.

        Raises :class:`~headrace.herder.errors.RequestError`; then nothing has changed, provided that the stores
        can be reached, and a creation that failed at its last step has left no offsets.
        """
        step = change.in_step
        with step(CreationStep.WIPING_OFFSETS):
            self.settle()
            self._writer.fence()
            known = self._writer.known()
            wanted = change.wanted(known)
        if wanted is None:
            self._writer.release()
            return None
        with step(CreationStep.VALIDATING_OFFSETS):
            # Before the hook, which may change what nobody takes back.
            changing = difference(known, self._writer.as_stored(wanted.store))
            handled = self._hooks.alter(wanted.ask, wanted.visible)
        if changing or change.stored is not None:
            with step(CreationStep.WIPING_OFFSETS), self._writer.storing():
                intent = self._store.begin(_intent(self._name, change, changing, now_ms), keep)
            with step(CreationStep.SETTING_OFFSETS):
                self._write(intent)
            with step(CreationStep.WRITING_CONFIG):
                self._finish(intent)
        self._writer.release()
        return handled

    def close(self) -> None:
        """Close the connections to Kafka."""
        self._writer.close()

    def settle(self, *, may_create: bool = False) -> None:
        """Finish a change that was interrupted, if there is one.

        A creation is completed only with *may_create*, and otherwise undone: by then its name may belong to
        another connector.
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
        outcome = settlement(intent, self._writer.known())
        if outcome.write:
            self._writer.write(outcome.write)
        with self._writer.storing():
            if outcome.is_done:
                self._store.finish(intent)
            else:
                self._store.abandon(intent)
        self._writer.release()
        _log.warning(
            "Connector %s: change %d of its offsets was interrupted; it is %s now.",
            self._name,
            intent.entry.id,
            "done" if outcome.is_done else "undone",
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
        except ConnectError as error:
            # A takeover by another worker is expected, and the answered error reports it.
            is_expected = isinstance(error.__cause__, ConnectorFencedError)
            _log.error(
                "Connector %s: change %d of its offsets failed, and could not be undone yet. That is "
                "retried before the connector starts or changes, and when the worker starts.",
                self._name,
                intent.entry.id,
                exc_info=None if is_expected else error,
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
