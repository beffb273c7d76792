"""One slot from its token to its last word."""

from __future__ import annotations

import traceback

from headrace.connect.errors import ConnectError, ReplanError, RetriableError, StaleTokenError
from headrace.observe.hidden import Hidden
from headrace.slot.channel import ChannelClient
from headrace.slot.claim import claimed, tell_end
from headrace.slot.frame_source import ReceivedFrameSource
from headrace.slot.lease import Lease
from headrace.slot.logs import Follow, slot_log
from headrace.slot.run import SlotRun
from headrace.slot.work import Outcome, Progress, SlotReport, SlotTicket, SlotWork


def run_slot(ticket: SlotTicket, received: ReceivedFrameSource | None = None) -> SlotReport:
    """Do the work that *ticket*'s token stands for, and say how it ended.

    With *received* another process reads, and this one writes what it has read.
    Called by Spark in a Python process, possibly more than once for one token: only the first claim is
    granted, every other copy returns at once without touching Kafka.
    """
    with ChannelClient(ticket) as client:
        try:
            work, form = claimed(client)
        except (RetriableError, StaleTokenError) as error:
            return SlotReport(outcome=Outcome.STALE, reason=str(error))
        hidden = Hidden(values=work.hidden)
        work = work if received is None else received.part_of(work)
        with slot_log(form, connector=work.connector, task=work.task, hidden=hidden) as follow:
            return _done(ticket, work, client, follow, received=received)


def _done(
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
        run = SlotRun(work, client, lease, progress, received=received)
        report = _report(work, run, progress)
    finally:
        lease.close()
    tell_end(client, report)
    return report


def _report(work: SlotWork, run: SlotRun, progress: Progress) -> SlotReport:
    outcome, error = Outcome.ASKED, None
    try:
        outcome = run.run()
    except (ReplanError, RetriableError) as raised:
        outcome, error = Outcome.REPLAN, raised
    except (Exception, SystemExit) as raised:  # noqa: BLE001 - whatever happened, the driver hears of it
        outcome, error = Outcome.FAILED, raised
    clean = run.close() and outcome is not Outcome.REPLAN
    # Spark carries the reason, too, so it is masked here and not by the driver.
    hidden = Hidden(values=work.hidden)
    return SlotReport(
        outcome=outcome,
        clean=clean,
        surprising=error is not None and not isinstance(error, ConnectError),
        reason=None if error is None else hidden.masked(str(error)) or type(error).__name__,
        trace=None if error is None else hidden.masked("".join(traceback.format_exception(error))),
        progress=progress.as_message(),
    )
