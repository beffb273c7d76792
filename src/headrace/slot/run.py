"""The task loop of one granted slot: fence, start, read and write, stop."""

from __future__ import annotations

import logging
from collections.abc import Callable

from headrace.class_path import class_at
from headrace.connect.errors import StaleTokenError, TaskFailedError
from headrace.connect.task import SourceTask
from headrace.kafka.client_config import producer_config
from headrace.kafka.client_sender import make_sender
from headrace.kafka.sender import Sender
from headrace.slot.boundary import BoundaryRequests
from headrace.slot.chain import chain_of
from headrace.slot.channel import ChannelClient, ChannelOffsets
from headrace.slot.committing import Committing
from headrace.slot.context import context_of
from headrace.slot.frame_source import FrameSource
from headrace.slot.frames import Place
from headrace.slot.hooks import overrides
from headrace.slot.lease import Lease
from headrace.slot.outlet_making import made_outlet
from headrace.slot.outliving import TransactionTooLongError
from headrace.slot.reading import reading_half
from headrace.slot.retrying import Retrying, retrying_in
from headrace.slot.work import BoundaryKind, Outcome, Progress, SlotWork
from headrace.slot.writing import WritingHalf

_log = logging.getLogger(__name__)

_LEFT_OPEN = (
    "There is nothing more to read, and the connector has not ended its last transaction (transaction.boundary is "
    "connector). What is in it is thrown away, and read again by the next run."
)


class SlotRun:
    """The task loop of one granted slot. *run* once, then *close*, on one thread.

    With *received* another process reads, and the task of this one is never polled.
    """

    def __init__(
        self,
        work: SlotWork,
        client: ChannelClient,
        lease: Lease,
        progress: Progress,
        *,
        received: FrameSource | None = None,
        make_sender: Callable[..., Sender] = make_sender,
    ) -> None:
        self._work = work
        self._client = client
        self._lease = lease
        self._progress = progress
        self._received = received
        self._make_sender = make_sender
        self._sender: Sender | None = None
        self._task: SourceTask | None = None
        self._writing: WritingHalf | None = None
        self._clean = True

    def run(self) -> Outcome:
        """Fence, start, read and write until reading ends; raises whatever ended it otherwise."""
        task = class_at(self._work.task_class, SourceTask)()
        sender = self._opened_sender(task)
        self._task = task
        source = self._started(task)
        writing = self._writing = self._writing_half(task, sender)
        self._write(writing, source)
        if writing.left_open:
            self._tell_left_open(source.outcome)
        return source.outcome

    def close(self) -> bool:
        """Release everything; whether no transaction was left behind."""
        for step in (self._abandon, self._stop_task, self._close_sender):
            try:
                step()
            except Exception as error:  # noqa: BLE001 - the steps after it must run, too
                self._clean = self._clean and step != self._abandon
                _log.warning("While a slot of %s ended: %s", self._work.connector, error)
        return self._clean

    def _started(self, task: SourceTask) -> FrameSource:
        """Where frames come from: *task*, which is started, or what another process reads."""
        work = self._work
        requests = BoundaryRequests() if work.boundary is BoundaryKind.CONNECTOR else None
        task.initialize(context_of(work, self._client, self._lease, requests))
        task.start(work.config)
        return self._received or reading_half(
            task, work, self._lease, self._progress, requests=requests
        )

    def _writing_half(self, task: SourceTask, sender: Sender) -> WritingHalf:
        retrying, stored = self._retrying(), ChannelOffsets(self._client)
        outlet = made_outlet(self._work, sender, self._client, self._progress, retrying=retrying)
        committing = Committing(task, outlet, self._lease, self._progress, stored=stored)
        return WritingHalf(task, outlet, self._lease, committing)

    def _write(self, writing: WritingHalf, source: FrameSource) -> None:
        chain = chain_of(self._work, self._retrying())
        try:
            writing.write(chain.frames(source.frames()))
        except TransactionTooLongError as error:
            # A newer owner looks the same; then it is not for this slot to fail the connector.
            self._check_token("The token was withdrawn while a transaction was open.")
            raise TaskFailedError(str(error)) from error

    def _tell_left_open(self, outcome: Outcome) -> None:
        """Say that the last transaction was thrown away; raises where the same would happen again."""
        if outcome is Outcome.FINISHED:
            raise TaskFailedError(
                f"Task {self._work.connector}-{self._work.task} has finished its share without ending "
                "its last transaction, and transaction.boundary is connector: it would read it again "
                "for ever."
            )
        if outcome is Outcome.IDLE:
            _log.warning(_LEFT_OPEN)

    def _abandon(self) -> None:
        if self._writing is not None:
            self._writing.abandon()

    def _stop_task(self) -> None:
        if self._task is not None:
            # The driver gives it the graceful time: a stop that hangs would hold the slot for ever.
            self._progress.stopping_task = True
            self._task.stop()
            self._progress.stopping_task = False

    def _close_sender(self) -> None:
        if self._sender is not None:
            self._sender.close()

    def _opened_sender(self, task: SourceTask) -> Sender:
        work = self._work
        sender = self._sender = self._make_sender(
            producer_config(work.producer, transactional_id=work.transactional_id),
            owner=f"task {work.connector}-{work.task}",
            waiting=self._still_ours,
            tells_places=overrides(task, "commit_record"),
        )
        sender.open()
        # Whoever was held between its claim and here may have fenced a newer slot, but must not write.
        self._check_token("The token was withdrawn before the first transaction.")
        return sender

    def _check_token(self, withdrawn: str) -> None:
        if self._client.ask("valid")["valid"] is not True:
            raise StaleTokenError(withdrawn)

    def _still_ours(self, waited_for: str) -> None:
        self._progress.waiting_for = waited_for
        self._lease.check()

    def _retrying(self) -> Retrying:
        return retrying_in(self._work, self._lease, self._progress, self._commit_meanwhile)

    def _commit_meanwhile(self, waits_from: Place | None) -> None:
        if self._writing is not None:
            self._writing.commit_meanwhile(waits_from)
