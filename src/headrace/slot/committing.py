"""Where a transaction ends: what has been written since the last commit, and the commit of it."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable

from headrace.connect.batch import SourceBatch
from headrace.connect.partition import OffsetReader, SourceOffset, SourcePartition
from headrace.connect.task import SourceTask
from headrace.slot.amounts import Amounts
from headrace.slot.frames import Place
from headrace.slot.hooks import CommitHooks
from headrace.slot.lease import Lease
from headrace.slot.offset_updates import OffsetUpdates
from headrace.slot.outlet import Outlet
from headrace.slot.outliving import OpenTransaction
from headrace.slot.pending import PendingOffsets, raise_failed_update
from headrace.slot.sent import SentRows
from headrace.slot.work import Progress

_log = logging.getLogger(__name__)

_NOTHING_OPEN = (
    "The task asked to abort its transaction, and none is open: nothing was sent since the last one ended. Offsets "
    "that have moved since are committed."
)


class Committing:
    """Keeps what the writing half has written, and commits it with its offsets where the boundary allows.

    The only one who moves offsets; asks *task* for ``update_offsets`` and tells it of commits.
    """

    def __init__(
        self,
        task: SourceTask,
        outlet: Outlet,
        lease: Lease,
        progress: Progress,
        *,
        stored: OffsetReader | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._outlet = outlet
        self._lease = lease
        self._clock = clock
        self._pending = PendingOffsets()
        self._updates = OffsetUpdates(task, stored)
        self._amounts = Amounts(progress)
        self._uncommitted = False
        self._held_back = False
        self.rows = SentRows()
        self.hooks = CommitHooks(task)
        self.left_open = False
        """Whether records were thrown away at the end, because the connector had not ended their transaction."""

    def sent(self, batch: SourceBatch) -> None:
        """All of *batch* is handed over."""
        self._amounts.sent(batch)
        self.moved(batch.source_partition, batch.offset_at(-1))

    def moved(self, partition: SourcePartition, offset: SourceOffset | None) -> None:
        """Everything of *partition* up to *offset* is written, or passed over."""
        self._uncommitted = True
        self._pending.put(partition, offset)

    def before_more_of_poll(self, next_from: Place | None) -> None:
        """Something of a poll is to be written, *next_from* there; commit what precedes it in that poll, if due.

        Not directly behind each piece: behind the last one the poll is at its end. Nor where the offset of
        what precedes it says that the next has been read as well.
        """
        if self._updates.inside_poll:
            self._commit_inside_poll(next_from)
        self._updates.inside_poll = True

    def meanwhile(self, next_from: Place | None) -> None:
        """Commit what is written of a poll, if that is due, while its next rows are long in coming."""
        # The task is not asked for updates: its position is behind them.
        self._updates.inside_poll = True
        self._commit_inside_poll(next_from)

    def poll_ended(self) -> None:
        """All of a poll is written; commit it, if that is due."""
        self._updates.inside_poll = False
        boundary = self._outlet.boundary
        overdue = self._updates.is_overdue and boundary.commits_by_itself
        if overdue or boundary.due_after_poll(self._clock()):
            self._commit()

    def asked_to_commit(self, *, ends_poll: bool) -> None:
        """The connector ends its transaction here."""
        self._updates.inside_poll &= not ends_poll
        self._commit()

    def asked_to_abort(self, *, ends_poll: bool) -> None:
        """The connector throws away its transaction here, and moves past it."""
        self._updates.inside_poll &= not ends_poll
        if not self._outlet.commits.abort():
            _log.warning(_NOTHING_OPEN)
        self.rows.forget()
        self.hooks.dropped()
        self._outlet.tolerance.dropped()
        self._amounts.dropped()
        self._commit()

    def end(self) -> None:
        """Nothing more is written: commit, or throw away what only the connector may commit."""
        if self._outlet.boundary.commits_by_itself:
            self._commit()
        elif self._uncommitted:
            self.left_open = True
            self._outlet.commits.abort()

    def end_before(self, place: Place | None) -> None:
        """End before the record from *place* that fails: with a commit, if it will then be read again."""
        if not self._would_pass(place):
            self.end()

    def end_inside_poll_before(self, place: Place | None) -> None:
        """As :meth:`end_before`, where polling fails or a row of a poll does."""
        self._updates.inside_poll = True
        self.end_before(place)

    def open_transaction(self) -> OpenTransaction:
        """What is in the transaction that is open, for whoever tells why it was too long."""
        return OpenTransaction(
            boundary=self._outlet.boundary.kind,
            records=self._amounts.in_transaction,
            held_back=self._held_back,
        )

    def _commit_inside_poll(self, next_from: Place | None) -> None:
        due = self._outlet.boundary.due_inside_poll(self._clock())
        self._held_back = due and self._would_pass(next_from)
        if due and not self._held_back:
            self._commit()

    def _would_pass(self, place: Place | None) -> bool:
        """Whether a commit would say of the record from *place*, which is not sent yet, that it has been read."""
        return place is not None and self._pending.end_at(*place)

    def _commit(self) -> None:
        self._lease.check()
        began = self._clock()
        commits = self._outlet.commits
        commits.settle()
        self._ask_for_updates()
        offsets = self._pending.taken()
        if commits.commit(offsets):
            took = self._clock() - began
            self._amounts.took(took, in_transaction=commits.in_transactions)
        self._amounts.committed(moved_offsets=self._updates.committed(offsets))
        self._outlet.tolerance.committed()
        self._uncommitted = False
        self.rows.forget()
        self._outlet.boundary.committed(self._clock())
        self.hooks.committed()

    def _ask_for_updates(self) -> None:
        try:
            self._pending.put_all(self._updates.asked(self._pending.so_far()))
        except Exception as error:  # noqa: BLE001 (raised again, or told and tried again)
            if self._outlet.commits.update_must_succeed:
                raise_failed_update(error)
            _log.exception("update_offsets raised; it is asked again at the next commit")
