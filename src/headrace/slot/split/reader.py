"""The process that reads for a slot, from its token to its last word."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from headrace.connect.errors import RetriableError, StaleTokenError
from headrace.observe.hidden import Hidden
from headrace.slot.channel import ChannelClient
from headrace.slot.claim import claimed, tell_end
from headrace.slot.frames import Failed
from headrace.slot.lease import Lease
from headrace.slot.logs import Follow, slot_log
from headrace.slot.split.cutting import work_of_reading
from headrace.slot.split.encoder import FrameEncoder
from headrace.slot.split.pushing import PUSH_SECONDS, Push, Pushing
from headrace.slot.split.read_ahead import ReadAhead
from headrace.slot.split.reading_run import ReadingRun
from headrace.slot.split.types import FrameTypes
from headrace.slot.work import Outcome, Progress, SlotReport, SlotTicket, SlotWork


def read_part(ticket: SlotTicket, carries: FrameTypes, push: Push) -> Iterator[pa.RecordBatch]:
    """Read the share that *ticket*'s token stands for, as rows of frames of *carries*.

    Called by Spark in a Python process, possibly more than once for one token: every copy but the first gives
    no record, and says why. The last row says how reading has ended; the task is stopped behind it.
    """
    encoder = FrameEncoder(carries)
    with ChannelClient(ticket) as client:
        try:
            work, form = claimed(client)
        except (RetriableError, StaleTokenError) as error:
            yield from encoder.rows(Failed(StaleTokenError(str(error))))
            yield encoder.end(Outcome.STALE)
            return
        hidden = Hidden(values=work.hidden)
        with slot_log(form, connector=work.connector, task=work.task, hidden=hidden) as follow:
            mine, pushing = work_of_reading(work), Pushing(encoder, push)
            yield from _read(ticket, mine, client, follow=follow, pushing=pushing)


def _read(
    ticket: SlotTicket, work: SlotWork, client: ChannelClient, *, follow: Follow, pushing: Pushing
) -> Iterator[pa.RecordBatch]:
    progress = Progress()
    lease = Lease(
        ChannelClient(ticket), progress, lease_seconds=work.lease_seconds, follow_log=follow
    )
    lease.start()
    run = ReadingRun(work, client, lease, progress)
    ahead = ReadAhead(run)
    try:
        yield from pushing.rows(ahead.frames(PUSH_SECONDS))
        yield pushing.encoder.end(run.outcome)
        yield from pushing.pushes()
    finally:
        lease.end()
        ahead.close()
        lease.close()
        report = SlotReport(outcome=run.outcome, progress=progress.as_message())
        tell_end(client, report)
