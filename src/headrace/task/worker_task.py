"""One task in one slot, from claiming its token to its final report: claim, open, start, read and write, stop."""

from __future__ import annotations

import logging
import os
import platform
import traceback
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Protocol

from headrace import __version__
from headrace.class_path import class_at
from headrace.connect.errors import (
    ConnectError,
    PartitionError,
    ReplanError,
    RetriableError,
    StaleTokenError,
    TaskFailedError,
)
from headrace.connect.partition import OffsetReader
from headrace.connect.task import SourceTask, Split, TransactionContext
from headrace.kafka.client_config import producer_config
from headrace.kafka.client_sender import make_sender
from headrace.kafka.sender import Sender
from headrace.kafka.wire_sender import make_wire_sender
from headrace.observe.log_format import LogForm
from headrace.pids import identity_of
from headrace.task.chain import chain_of
from headrace.task.channel import ChannelClient, ChannelOffsets, Lease
from headrace.task.commit_hooks import overrides
from headrace.task.connector_spec import BoundaryKind
from headrace.task.error_handling import RetryWithBackoff, retrying_in
from headrace.task.frames import Frame, Place
from headrace.task.logs import Follow, slot_log
from headrace.task.offset_commit import OffsetCommitter
from headrace.task.poll_loop import make_poll_loop
from headrace.task.slot_report import Outcome, Progress, SlotReport
from headrace.task.slot_work import SlotTicket, SlotWork
from headrace.task.transaction_boundary import BoundaryRequests
from headrace.task.transaction_timeout import TransactionTooLongError
from headrace.task.write_pipeline import make_write_pipeline
from headrace.task.writer import TaskWriter

_log = logging.getLogger(__name__)

_LEFT_OPEN = (
    "There is nothing more to read, and the connector has not ended its last transaction (transaction.boundary is "
    "connector). Its records are discarded, and read again by the next run."
)


def claimed(client: ChannelClient) -> tuple[SlotWork, LogForm]:
    """Claim the token of *client*; returns its work and the log settings. Only the first claim is granted.

    Raises ``StaleTokenError`` for every later claim, and ``RetriableError`` when the driver does not answer.
    """
    answer = client.ask(
        "claim",
        pid=os.getpid(),
        identity=identity_of(os.getpid()),
        host=platform.node(),
        version=__version__,
    )
    if not answer["granted"]:
        raise StaleTokenError(answer["reason"])
    return SlotWork.from_message(answer["work"]), LogForm(**answer["log"])


def report_end(client: ChannelClient, report: SlotReport) -> None:
    """Send the final report to the driver; if it does not answer, only log that."""
    try:
        client.ask("end", report=report.as_message())
    except RetriableError as error:
        # The driver counts a slot without a report as lost, and fences it, so nothing is at risk.
        _log.warning("%s", error)


class FrameSource(Protocol):
    """The source of frames: a polled task, or the process that polls it; *outcome* says how reading ended."""

    outcome: Outcome

    def frames(self) -> Iterator[Frame]:
        """All frames, in order."""
        ...


class ReceivedFrameSource(FrameSource, Protocol):
    """Frames that another process has read for this one."""

    def part_of(self, work: SlotWork) -> SlotWork:
        """The part of the slot's *work* that this process executes."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class SlotContext:
    """A ``TaskContext`` inside a slot."""

    connector: str
    task: int
    offsets: OffsetReader
    transaction: TransactionContext | None
    splits: Sequence[Split]
    takes_encoded: bool
    lease: Lease = field(repr=False)

    def stopping(self) -> bool:
        """Whether the slot should end."""
        return self.lease.should_end()


def context_of(
    work: SlotWork, client: ChannelClient, lease: Lease, transaction: TransactionContext | None
) -> SlotContext:
    """The context of the task that executes *work*."""
    return SlotContext(
        connector=work.spec.name,
        task=work.task,
        offsets=ChannelOffsets(client),
        transaction=transaction,
        splits=work.splits,
        takes_encoded=work.spec.takes_encoded,
        lease=lease,
    )


def sender_maker(work: SlotWork) -> Callable[..., Sender]:
    """Who makes the sender for *work*."""
    if work.spec.sends_by_wire:
        return partial(make_wire_sender, identity=work.identity)
    return make_sender


class WorkerTask:
    """The task of one granted slot. Call *run* once, then *close*, on one thread.

    With *received* another process reads, and the task instance of this one is never polled.
    """

    def __init__(
        self,
        work: SlotWork,
        client: ChannelClient,
        lease: Lease,
        progress: Progress,
        *,
        received: FrameSource | None = None,
        make_sender: Callable[..., Sender] | None = None,
    ) -> None:
        self._work = work
        self._client = client
        self._lease = lease
        self._progress = progress
        self._received = received
        self._make_sender = make_sender or sender_maker(work)
        self._sender: Sender | None = None
        self._task: SourceTask | None = None
        self._writer: TaskWriter | None = None
        self._clean = True

    def run(self) -> Outcome:
        """Fence, start, read and write until reading ends; raises the error if something fails."""
        task = class_at(self._work.task_class, SourceTask)()
        sender = self._opened_sender(task)
        self._task = task
        source = self._started(task)
        writer = self._writer = self._make_writer(task, sender)
        self._write(writer, source)
        if writer.left_open:
            self._report_left_open(source.outcome)
        return source.outcome

    def close(self) -> bool:
        """Release everything; returns whether no transaction was left open."""
        for step in (self._abandon, self._stop_task, self._close_sender):
            try:
                step()
            except Exception as error:  # noqa: BLE001 - the steps after it must run, too
                self._clean = self._clean and step != self._abandon
                _log.warning("Error while closing a slot of %s: %s", self._work.spec.name, error)
        return self._clean

    def _started(self, task: SourceTask) -> FrameSource:
        """Start *task*; returns the source of frames: the loop that polls it, or what another process reads."""
        work = self._work
        requests = BoundaryRequests() if work.spec.boundary is BoundaryKind.CONNECTOR else None
        task.initialize(context_of(work, self._client, self._lease, requests))
        task.start(work.config)
        return self._received or make_poll_loop(
            task, work, self._lease, self._progress, requests=requests
        )

    def _make_writer(self, task: SourceTask, sender: Sender) -> TaskWriter:
        retrying, stored = self._retrying(), ChannelOffsets(self._client)
        pipeline = make_write_pipeline(
            self._work,
            sender,
            self._client,
            self._progress,
            task=task,
            retrying=retrying,
        )
        committer = OffsetCommitter(task, pipeline, self._lease, self._progress, stored=stored)
        return TaskWriter(task, pipeline, self._lease, committer)

    def _write(self, writer: TaskWriter, source: FrameSource) -> None:
        chain = chain_of(self._work, self._retrying())
        try:
            writer.write(chain.frames(source.frames()))
        except TransactionTooLongError as error:
            # Fencing by a newer owner looks the same; then this slot must not fail the connector.
            self._check_token("The token was withdrawn while a transaction was open.")
            raise TaskFailedError(str(error)) from error

    def _report_left_open(self, outcome: Outcome) -> None:
        """Log that the last transaction was aborted; raises if the same would happen again."""
        if outcome is Outcome.FINISHED:
            raise TaskFailedError(
                f"Task {self._work.spec.name}-{self._work.task} has finished its share without ending "
                "its last transaction, and transaction.boundary is connector: it would read the same "
                "records again forever."
            )
        if outcome is Outcome.IDLE:
            _log.warning(_LEFT_OPEN)

    def _abandon(self) -> None:
        if self._writer is not None:
            self._writer.abandon()

    def _stop_task(self) -> None:
        if self._task is not None:
            # The driver limits this to the grace period: a stop that hangs would hold the slot forever.
            self._progress.stopping_task = True
            self._task.stop()
            self._progress.stopping_task = False

    def _close_sender(self) -> None:
        if self._sender is not None:
            self._sender.close()

    def _opened_sender(self, task: SourceTask) -> Sender:
        work = self._work
        sender = self._sender = self._make_sender(
            producer_config(work.spec.producer, transactional_id=work.transactional_id),
            owner=f"task {work.spec.name}-{work.task}",
            waiting=self._still_ours,
            reports_metadata=overrides(task, "commit_record"),
        )
        sender.open()
        # A process that was suspended after its claim may just have fenced a newer slot, but must not write; one with an
        # identity from the driver has fenced no one, and would be fenced itself.
        self._check_token("The token was withdrawn before the first transaction.")
        return sender

    def _check_token(self, withdrawn: str) -> None:
        answer = self._client.ask("valid")
        if answer["valid"] is not True:
            raise StaleTokenError(answer.get("reason", withdrawn))

    def _still_ours(self, waited_for: str) -> None:
        self._progress.waiting_for = waited_for
        self._lease.check()

    def _retrying(self) -> RetryWithBackoff:
        return retrying_in(self._work, self._lease, self._progress, self._commit_meanwhile)

    def _commit_meanwhile(self, waits_from: Place | None) -> None:
        if self._writer is not None:
            self._writer.commit_meanwhile(waits_from)


def run_slot(ticket: SlotTicket, received: ReceivedFrameSource | None = None) -> SlotReport:
    """Execute the work of *ticket*'s token; returns how it ended.

    With *received* another process reads, and this one writes what it has read. Called by Spark in a Python
    process, possibly more than once for one token: only the first claim is granted, every other copy returns at
    once without touching Kafka.
    """
    with ChannelClient(ticket) as client:
        try:
            work, form = claimed(client)
        except (RetriableError, StaleTokenError) as error:
            return SlotReport(outcome=Outcome.STALE, reason=str(error))
        secrets = work.spec.secrets
        work = work if received is None else received.part_of(work)
        with slot_log(form, connector=work.spec.name, task=work.task, secrets=secrets) as follow:
            return _run_claimed(ticket, work, client, follow, received=received)


def _run_claimed(
    ticket: SlotTicket,
    work: SlotWork,
    client: ChannelClient,
    follow: Follow,
    *,
    received: ReceivedFrameSource | None,
) -> SlotReport:
    progress = Progress()
    lease = Lease(
        ChannelClient(ticket), progress, lease_seconds=work.lease_seconds, follow_log=follow
    )
    lease.start()
    try:
        run = WorkerTask(work, client, lease, progress, received=received)
        report = _run_to_report(work, run, progress)
    finally:
        lease.close()
    report_end(client, report)
    return report


def _run_to_report(work: SlotWork, run: WorkerTask, progress: Progress) -> SlotReport:
    outcome, error = Outcome.ASKED, None
    try:
        outcome = run.run()
    except (ReplanError, RetriableError) as raised:
        outcome, error = Outcome.REPLAN, raised
    except (Exception, SystemExit) as raised:  # noqa: BLE001 - any error is reported to the driver
        outcome, error = Outcome.FAILED, raised
    clean = run.close() and outcome is not Outcome.REPLAN
    failed = error if isinstance(error, PartitionError) and work.planned else None
    # Spark carries the reason as well, so it is masked here and not by the driver.
    secrets = work.spec.secrets
    return SlotReport(
        outcome=outcome,
        clean=clean,
        surprising=error is not None and not isinstance(error, ConnectError),
        reason=None if error is None else secrets.masked(str(error)) or type(error).__name__,
        trace=None if error is None else secrets.masked("".join(traceback.format_exception(error))),
        partition=None if failed is None else dict(failed.partition),
        source_offset=None if failed is None else failed.source_offset,
        progress=progress.as_message(),
    )
