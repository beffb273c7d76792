"""What a task is told of the slot in which it runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from headrace.connect.partition import OffsetReader
from headrace.connect.task import Split, TransactionContext
from headrace.slot.channel import ChannelClient, ChannelOffsets
from headrace.slot.lease import Lease
from headrace.slot.work import SlotWork


@dataclass(frozen=True, slots=True, kw_only=True)
class SlotContext:
    """A ``TaskContext`` inside a slot."""

    connector: str
    task: int
    offsets: OffsetReader
    transaction: TransactionContext | None
    splits: Sequence[Split]
    lease: Lease = field(repr=False)

    def stopping(self) -> bool:
        """Whether the slot should end."""
        return self.lease.should_end()


def context_of(
    work: SlotWork, client: ChannelClient, lease: Lease, transaction: TransactionContext | None
) -> SlotContext:
    """The context of the task that does *work*."""
    return SlotContext(
        connector=work.connector,
        task=work.task,
        offsets=ChannelOffsets(client),
        transaction=transaction,
        splits=work.splits,
        lease=lease,
    )
