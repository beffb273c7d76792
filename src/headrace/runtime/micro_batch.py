"""One micro-batch in flight: its tokens, what its slots say, and whether they may go on."""

from __future__ import annotations

import secrets
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from headrace.connect.partition import SourceOffset, SourcePartition
from headrace.task.work import EndReason, Outcome, SlotReport, SlotWork, reading_token


class PerSlotOrder:
    """Of one micro-batch's slots, by their tokens. *changed* is the micro-batch's, and is held in every call.

    A slot numbers its requests upwards and asks for one after another. So one that comes behind a newer one is one
    that the slot has given up, and it may have asked for the opposite since.
    """

    def __init__(self, changed: threading.Condition) -> None:
        self._changed = changed
        self._taken: set[str] = set()
        self._last: dict[str, int] = {}

    def wait_for(self, token: str) -> None:
        """Wait, with the lock let go, until nothing is being done for *token*."""
        self._changed.wait_for(lambda: token not in self._taken)

    def wait_for_all(self) -> None:
        """Wait, with the lock let go, until nothing is being done: as long as what is done may take."""
        self._changed.wait_for(lambda: not self._taken)

    def take(self, token: str, number: int) -> bool:
        """Begin with request *number* of *token*, for which nothing is being done; ``False`` when it was overtaken."""
        if number <= self._last.get(token, 0):
            return False
        self._last[token] = number
        self._taken.add(token)
        return True

    def give_back(self, token: str) -> None:
        """End what is being done for *token*."""
        self._taken.remove(token)
        self._changed.notify_all()


# What of a slot's progress is for the process to tell that reads.
_OF_READING = ("polled_records", "polls", "batches", "source_away")
# What both do, and count.
_OF_BOTH = ("retries",)


@dataclass(slots=True, kw_only=True)
class SlotState:
    """What the driver knows of one slot. Written under its micro-batch's lock.

    *reader* is the same of the process that reads for it, where that is another one than the one that writes; it
    *repeats* what another copy of it has begun.
    """

    work: SlotWork
    token: str
    claimed: bool = False
    valid: bool = True
    pid: int | None = None
    identity: str | None = None
    host: str | None = None
    heard_at: float = 0.0
    progress: Mapping[str, Any] = field(default_factory=dict[str, Any])
    report: SlotReport | None = None
    stopping_since: float | None = None
    gone: bool = False
    repeats: bool = False
    admitted: bool = False
    reader: SlotState | None = None

    def done(self) -> Mapping[str, Any]:
        """What was done so far, whichever of its processes told it."""
        told = {} if self.reader is None else self.reader.progress
        of_reading = {name: told[name] for name in _OF_READING if name in told}
        of_both = {
            name: self.progress.get(name, 0) + told[name] for name in _OF_BOTH if name in told
        }
        return {**self.progress, **of_reading, **of_both}

    def parts(self) -> Iterator[SlotState]:
        """This, and its reader if it has one."""
        yield self
        if self.reader is not None:
            yield self.reader


class Admit(Protocol):
    """Lets the process of a slot write."""

    def __call__(self, work: SlotWork, *, has_begun: bool, siblings_have: bool) -> None:
        """Raise a ``ConnectError`` when it may not; told whether it, or another slot of its job, was let before."""
        ...


def _admit_all(work: SlotWork, *, has_begun: bool, siblings_have: bool) -> None:
    """For slots that no other worker's can be taken for."""


class MicroBatch:
    """The slots of one Spark job and the rule that each token is claimed once.

    With *readers* each slot has another process that reads for it, with a token of its own. With *repeats* that
    token is granted again, to copies that Spark makes of a slot that it has lost: no one writes what they read, but
    what Spark itself cannot do with it fails them, too, and after the last of them it says why.

    A slot writes only after *admit* has let it.

    The channel's threads call the methods that take a token; the connector's own thread calls the rest.
    One lock guards all of it, held only for moments: what is done for a slot while its token counts is done
    outside of it, and whoever withdraws tokens waits for that.
    """

    def __init__(
        self,
        works: Sequence[SlotWork],
        offsets: Mapping[SourcePartition, SourceOffset],
        *,
        run: str,
        admit: Admit = _admit_all,
        readers: bool = False,
        repeats: bool = False,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._clock = clock
        self._admit = admit
        # One after the other: what the first of them commits, the next must not take for somebody else's.
        self._admitting = threading.Lock()
        self._changed = threading.Condition(threading.RLock())
        self._slot_order = PerSlotOrder(self._changed)
        self._end_reason: EndReason | None = None
        self._first_claim_at: float | None = None
        self.offsets = offsets
        self.slots = [
            SlotState(work=work, token=f"{run}/{secrets.token_hex(16)}/{index}")
            for index, work in enumerate(works)
        ]
        if readers:
            for slot in self.slots:
                slot.reader = SlotState(work=slot.work, token=reading_token(slot.token))
        self._repeatable = {slot.reader.token for slot in self.slots if repeats and slot.reader}
        self._by_token = {part.token: part for part in self.parts()}

    def claim(
        self, token: str, *, pid: int, host: str, identity: str | None = None
    ) -> SlotWork | None:
        """The work of *token*, once; ``None`` for every later claim and after a withdrawal.

        *pid*, *identity* and *host* say in which process it will be done.
        """
        with self._changed:
            slot = self._by_token[token]
            if not slot.valid or (slot.claimed and token not in self._repeatable):
                return None
            slot.repeats = slot.claimed
            slot.claimed, slot.pid, slot.identity, slot.host = True, pid, identity, host
            slot.heard_at = self._clock()
            if self._first_claim_at is None:
                self._first_claim_at = slot.heard_at
            self._changed.notify_all()
            return slot.work

    def may_write(self, token: str) -> bool:
        """Whether the slot of *token*, which has initialised its transactional id, may write; asked again at its time-out.

        Blocks on brokers. Raises what *admit* raises; then it may not.
        """
        with self._admitting:
            if not self.is_valid(token):
                return False
            slot = self._by_token[token]
            siblings_have = any(each.admitted for each in self.slots if each is not slot)
            self._admit(slot.work, has_begun=slot.admitted, siblings_have=siblings_have)
            slot.admitted = True
        return self.is_valid(token)

    def is_valid(self, token: str) -> bool:
        """Whether the slot of *token* may write."""
        with self._changed:
            return self._by_token[token].valid

    def expects(self, token: str) -> bool:
        """Whether the slot of *token* may still write and has not said its last word."""
        with self._changed:
            slot = self._by_token[token]
            return slot.valid and not slot.gone

    def beat(self, token: str, progress: Mapping[str, Any]) -> tuple[bool, str | None]:
        """Hear a slot's progress; whether it may write, and why it should end if it should."""
        with self._changed:
            slot = self._by_token[token]
            slot.heard_at = self._clock()
            if slot.repeats:
                return slot.valid, None
            slot.progress = progress
            if not progress.get("stopping_task"):
                slot.stopping_since = None
            elif slot.stopping_since is None:
                slot.stopping_since = slot.heard_at
            self._changed.notify_all()
            return slot.valid, self._end_reason

    def end(self, token: str, report: SlotReport) -> None:
        """Hear a slot's last word; one that lost its token does not count any more."""
        with self._changed:
            slot = self._by_token[token]
            slot.gone = True
            if slot.valid and not slot.repeats:
                slot.report = report
                slot.progress = report.progress
            self._changed.notify_all()

    def refuse(self, token: str, report: SlotReport) -> None:
        """End a slot that may not claim; nothing when another copy of it has claimed already."""
        with self._changed:
            if not self._by_token[token].claimed:
                self.end(token, report)

    def while_valid(self, token: str, number: int, act: Callable[[], None]) -> bool:
        """Do *act*, which the slot asked for by its request *number*; whether that was done.

        Not when the token is withdrawn, the slot has said its last word, or a newer request of it came before. A
        slot's requests wait for each other, and a withdrawal for all of them; heartbeats wait for nothing.
        """
        with self._changed:
            self._slot_order.wait_for(token)
            if not (self.expects(token) and self._slot_order.take(token, number)):
                return False
        try:
            act()
        finally:
            with self._changed:
                self._slot_order.give_back(token)
        return True

    def ask_to_end(self, reason: EndReason) -> None:
        """Tell every slot, at its next beat, to commit and end; a later reason takes the place of this."""
        with self._changed:
            self._end_reason = reason
            self._changed.notify_all()

    def withdraw(self) -> list[SlotState]:
        """Take back every token without a report; those that they belonged to, readers included.

        Returns when nothing is being done for any slot any more: one that has said its last word may have given up
        waiting for it.
        """
        with self._changed:
            unconfirmed = [part for part in self.parts() if part.report is None]
            for part in unconfirmed:
                part.valid = False
            self._changed.notify_all()
            self._slot_order.wait_for_all()
            return unconfirmed

    def all_reported(self) -> bool:
        """Whether every slot has said its last word, and so has each reader that was there."""
        with self._changed:
            readers = (slot.reader for slot in self.slots if slot.reader is not None)
            return all(slot.report is not None for slot in self.slots) and not any(
                reader.claimed and not (reader.gone or reader.repeats) for reader in readers
            )

    def may_learn_why(self) -> bool:
        """Whether a slot was lost whose reader may be repeated, until Spark says why."""
        with self._changed:
            return bool(self._repeatable) and Outcome.REPLAN in self.outcomes()

    @property
    def first_claim_at(self) -> float | None:
        """When the first slot claimed its work, by the clock; ``None`` while Spark is still starting them."""
        with self._changed:
            return self._first_claim_at

    def not_started(self) -> int:
        """How many slots have not claimed their work, so Spark has probably not started them."""
        with self._changed:
            return sum(not slot.claimed and slot.report is None for slot in self.slots)

    def silent(self, lease_seconds: float) -> list[SlotState]:
        """The slots that are running and have not been heard for the length of their lease."""
        with self._changed:
            now = self._clock()
            return [
                part
                for part in self.parts()
                if part.claimed
                and not (part.gone or part.repeats)
                and now - part.heard_at > lease_seconds
            ]

    def hung(self, grace_seconds: float) -> list[SlotState]:
        """The slots whose task has been in its ``stop`` for longer than it may take."""
        with self._changed:
            now = self._clock()
            return [
                part
                for part in self.parts()
                if part.report is None
                and part.stopping_since is not None
                and now - part.stopping_since > grace_seconds
            ]

    def outcomes(self) -> list[Outcome]:
        """How the slots ended that have ended."""
        with self._changed:
            return [slot.report.outcome for slot in self.slots if slot.report is not None]

    def wait(self, seconds: float) -> None:
        """Wait for something to change."""
        with self._changed:
            self._changed.wait(seconds)

    def wake(self) -> None:
        """Wake the thread that waits."""
        with self._changed:
            self._changed.notify_all()

    def total(self, name: str) -> int:
        """The sum of one of the numbers of all slots' progress."""
        with self._changed:
            return sum(slot.progress.get(name, 0) for slot in self.slots)

    def done_by_tasks(self) -> list[tuple[int, Mapping[str, Any]]]:
        """The progress of each task that has said anything, with its number."""
        with self._changed:
            done = [(slot.work.task, slot.done()) for slot in self.slots]
            return [(task, told) for task, told in done if told]

    def topics(self) -> frozenset[str]:
        """The topics in which slots have committed records."""
        with self._changed:
            return frozenset(
                name for slot in self.slots for name in slot.progress.get("topics", ())
            )

    def waiting_for(self) -> str | None:
        """What a slot is waiting for, such as a broker that is away."""
        with self._changed:
            waits = (
                part.progress.get("waiting_for")
                for slot in self.slots
                for part in slot.parts()
                if part.report is None
            )
            return next((each for each in waits if each), None)

    def parts(self) -> list[SlotState]:
        """All slots, each with its reader if it has one."""
        return [part for slot in self.slots for part in slot.parts()]

    def tokens(self) -> list[str]:
        """Every token of this micro-batch, those of readers included."""
        return list(self._by_token)
