"""What gives the writing half its frames."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

from headrace.slot.frames import Frame
from headrace.slot.work import Outcome, SlotWork


class FrameSource(Protocol):
    """Where frames come from: a task, or the process that reads it; *outcome* says how reading has ended."""

    outcome: Outcome

    def frames(self) -> Iterator[Frame]:
        """All of them, in order."""
        ...


class ReceivedFrameSource(FrameSource, Protocol):
    """Frames that another process has read for this one."""

    def part_of(self, work: SlotWork) -> SlotWork:
        """What is left to this process of the slot's *work*."""
        ...
