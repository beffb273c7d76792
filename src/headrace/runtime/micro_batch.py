"""One micro-batch: its tokens, the reports of its slots, whether they may continue, and how it ended."""

from __future__ import annotations

import secrets
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from headrace.connect.errors import PartitionError
from headrace.connect.partition import SourceOffset, SourcePartition
from headrace.task.slot_report import Outcome, SlotReport
from headrace.task.slot_work import EndReason, SlotWork, reading_token

# The parts of a slot's progress that the reading process reports.
_OF_READING = ("polled_records", "polls", "batches", "source_away", "idle_seconds")
# Those that both processes count.
_OF_BOTH = ("retries",)


class PerSlotOrder:
    """Serialises the requests of each slot, by token. *changed* is the micro-batch's condition, held in every call.

    A slot sends requests one after another, with increasing numbers. A request that arrives after a newer one was
    given up by the slot, which may have requested the opposite since.
    """

    def __init__(self, changed: threading.Condition) -> None:
        self._changed = changed
        self._taken: set[str] = set()
        self._last: dict[str, int] = {}

    def wait_for(self, token: str) -> None:
        """Wait, releasing the lock, until no request of *token* is being processed."""
        self._changed.wait_for(lambda: token not in self._taken)

    def wait_for_all(self) -> None:
        """Wait, releasing the lock, until no request is being processed, however long that takes."""
        self._changed.wait_for(lambda: not self._taken)

    def take(self, token: str, number: int) -> bool:
        """Begin request *number* of *token*, which has none in progress; ``False`` when a newer one came before."""
        if number <= self._last.get(token, 0):
            return False
        self._last[token] = number
        self._taken.add(token)
        return True

    def give_back(self, token: str) -> None:
        """End the current request of *token*."""
        self._taken.remove(token)
        self._changed.notify_all()


@dataclass(slots=True, kw_only=True)
class SlotState:
    """What the driver knows about one slot. Written under its micro-batch's lock.

    *reader* is the state of the process that reads for it, if that is a separate process. *repeats* says that it is a
    copy of a reader that had begun before.
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
    write_allowed: bool = False
    reader: SlotState | None = None

    def done(self) -> Mapping[str, Any]:
        """The progress so far, merged from its processes."""
        read = {} if self.reader is None else self.reader.progress
        of_reading = {name: read[name] for name in _OF_READING if name in read}
        of_both = {
            name: self.progress.get(name, 0) + read[name] for name in _OF_BOTH if name in read
        }
        return {**self.progress, **of_reading, **of_both}

    def parts(self) -> Iterator[SlotState]:
        """This, and its reader if it has one."""
        yield self
        if self.reader is not None:
            yield self.reader


class WriteCheck(Protocol):
    """Decides whether the process of a slot may write."""

    def __call__(self, work: SlotWork, *, was_allowed: bool, siblings_were: bool) -> None:
        """Raise a ``ConnectError`` when it may not.

        *was_allowed* says that it was allowed before, *siblings_were* that another slot of its job was.
        """
        ...


def _allow_all(work: SlotWork, *, was_allowed: bool, siblings_were: bool) -> None:
    """Allow every slot, where no other worker can write for the connector."""


class MicroBatch:
    """The slots of one Spark job. Each token can be claimed once.

    With *readers* each slot has a second process that reads for it, with a token of its own. With *repeats* that
    token is granted again to the copies that Spark starts of a lost slot: what they read is not written, but if
    Spark cannot process it they fail as well, and after the last of them Spark reports the reason.

    A slot writes only after *check_write* has allowed it.

    The channel's threads call the methods that take a token; the connector's own thread calls the rest.
    One lock guards all state and is held only briefly: requests of slots are processed outside of it, and
    :meth:`withdraw` waits for them.
    """

    def __init__(
        self,
        works: Sequence[SlotWork],
        offsets: Mapping[SourcePartition, SourceOffset],
        *,
        run: str,
        check_write: WriteCheck = _allow_all,
        readers: bool = False,
        repeats: bool = False,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._clock = clock
        self._check_write = check_write
        # One at a time: the first one's commits must not be taken for those of another program by the next.
        self._checking_write = threading.Lock()
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

        *pid*, *identity* and *host* identify the process that executes it.
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
        """Whether the slot of *token*, which has initialised its transactional id, may write; repeated after a time-out.

        Calls brokers. When *check_write* raises, so does this, and the slot may not write.
        """
        with self._checking_write:
            if not self.is_valid(token):
                return False
            slot = self._by_token[token]
            siblings_were = any(each.write_allowed for each in self.slots if each is not slot)
            self._check_write(
                slot.work, was_allowed=slot.write_allowed, siblings_were=siblings_were
            )
            slot.write_allowed = True
        return self.is_valid(token)

    def is_valid(self, token: str) -> bool:
        """Whether the slot of *token* may write."""
        with self._changed:
            return self._by_token[token].valid

    def expects(self, token: str) -> bool:
        """Whether the slot of *token* may still write and has not reported its end."""
        with self._changed:
            slot = self._by_token[token]
            return slot.valid and not slot.gone

    def beat(self, token: str, progress: Mapping[str, Any]) -> tuple[bool, str | None]:
        """Take a slot's progress; returns whether it may write, and why it should end, if it should."""
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
        """Take a slot's final report; that of a slot that lost its token is ignored."""
        with self._changed:
            slot = self._by_token[token]
            slot.gone = True
            if slot.valid and not slot.repeats:
                slot.report = report
                slot.progress = report.progress
            self._changed.notify_all()

    def refuse(self, token: str, report: SlotReport) -> None:
        """End a slot that may not claim; do nothing if another copy of it has claimed already."""
        with self._changed:
            if not self._by_token[token].claimed:
                self.end(token, report)

    def while_valid(self, token: str, number: int, act: Callable[[], None]) -> bool:
        """Call *act* for the slot's request *number*; returns whether it was called.

        It is not called when the token is withdrawn, the slot has reported its end, or a newer request of it came
        before. A slot's requests wait for each other, and a withdrawal waits for all of them; heartbeats never wait.
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
        """Ask every slot, at its next beat, to commit and end; a later reason replaces an earlier one."""
        with self._changed:
            self._end_reason = reason
            self._changed.notify_all()

    def withdraw(self) -> list[SlotState]:
        """Invalidate every token without a report; returns their slots, readers included.

        Returns when no request of any slot is being processed: a slot that has reported its end may have given up
        waiting for one.
        """
        with self._changed:
            unconfirmed = [part for part in self.parts() if part.report is None]
            for part in unconfirmed:
                part.valid = False
            self._changed.notify_all()
            self._slot_order.wait_for_all()
            return unconfirmed

    def all_reported(self) -> bool:
        """Whether every slot has reported its end, and every reader that claimed its token."""
        with self._changed:
            readers = (slot.reader for slot in self.slots if slot.reader is not None)
            return all(slot.report is not None for slot in self.slots) and not any(
                reader.claimed and not (reader.gone or reader.repeats) for reader in readers
            )

    def may_learn_why(self) -> bool:
        """Whether a slot was lost whose reader may be repeated until Spark reports the reason."""
        with self._changed:
            return bool(self._repeatable) and Outcome.REPLAN in self.outcomes()

    @property
    def first_claim_at(self) -> float | None:
        """The clock's time of the first claim; ``None`` while Spark is still starting the slots."""
        with self._changed:
            return self._first_claim_at

    def not_started(self) -> int:
        """How many slots have not claimed their work: Spark has probably not started them."""
        with self._changed:
            return sum(not slot.claimed and slot.report is None for slot in self.slots)

    def silent(self, lease_seconds: float) -> list[SlotState]:
        """The slots that are running and have sent no heartbeat for the length of their lease."""
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
        """The slots whose task has been in its ``stop`` for longer than *grace_seconds*."""
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
        """The outcomes of the slots that have ended."""
        with self._changed:
            return [slot.report.outcome for slot in self.slots if slot.report is not None]

    def idle_seconds(self) -> float | None:
        """For how long all slots that have not ended have had nothing to read; ``None`` if one of them may have something.

        As of their last heartbeats.
        """
        with self._changed:
            idle = [slot.done().get("idle_seconds") for slot in self.slots if slot.report is None]
            known = [seconds for seconds in idle if seconds is not None]
            return min(known, default=None) if len(known) == len(idle) else None

    def wait(self, seconds: float) -> None:
        """Wait for something to change."""
        with self._changed:
            self._changed.wait(seconds)

    def wake(self) -> None:
        """Wake the thread that waits."""
        with self._changed:
            self._changed.notify_all()

    def total(self, name: str) -> int:
        """The sum of the number *name* over all slots' progress."""
        with self._changed:
            return sum(slot.progress.get(name, 0) for slot in self.slots)

    def done_by_tasks(self) -> list[tuple[int, Mapping[str, Any]]]:
        """The progress of each task that has reported any, with its number."""
        with self._changed:
            done = [(slot.work.task, slot.done()) for slot in self.slots]
            return [(task, progress) for task, progress in done if progress]

    def refused(self) -> list[tuple[int, str]]:
        """The tasks whose slots were given no work because of their version, and why."""
        with self._changed:
            return [
                (slot.work.task, slot.report.reason or "")
                for slot in self.slots
                if slot.report is not None and slot.report.outcome is Outcome.REFUSED
            ]

    def topics(self) -> frozenset[str]:
        """The topics in which slots have committed records."""
        with self._changed:
            return frozenset(
                name for slot in self.slots for name in slot.progress.get("topics", ())
            )

    def waiting_for(self) -> str | None:
        """What some slot is waiting for, such as a broker that is away."""
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


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchResult:
    """How a micro-batch ended. *clean* says that none of its slots can have left a transaction open.

    *lost* is why it was given up; with *lost_membership*, all of the worker's are.
    """

    reports: Sequence[SlotReport]
    clean: bool
    lost: str | None
    committed_records: int
    dead_lettered: int = 0
    skipped: int = 0
    quarantined: int = 0
    lost_membership: bool = False

    def failed(self) -> list[tuple[int, SlotReport]]:
        """The tasks that failed, with their reports; those that failed for one source partition are not among them."""
        return [
            (n, each)
            for n, each in enumerate(self.reports)
            if each.outcome is Outcome.FAILED and each.partition is None
        ]

    def failed_partitions(self) -> dict[SourcePartition, PartitionError]:
        """The source partitions that could not be read on, and why."""
        found = (
            PartitionError(
                SourcePartition(each.partition), each.reason or "", source_offset=each.source_offset
            )
            for each in self.reports
            if each.partition is not None
        )
        return {each.partition: each for each in found}

    def brought_anything(self) -> bool:
        """Whether it moved an offset by a record, including skipped ones."""
        return bool(self.committed_records or self.dead_lettered or self.skipped)

    def idle(self) -> bool:
        """Whether every slot was idle."""
        return all(each.outcome is Outcome.IDLE for each in self.reports)

    def was_asked(self) -> bool:
        """Whether a slot was asked to end before it had finished, or was idle."""
        return any(each.outcome is Outcome.ASKED for each in self.reports)

    def refused(self) -> list[tuple[int, SlotReport]]:
        """The tasks that were given no work because of their version, with their reports."""
        return [(n, each) for n, each in enumerate(self.reports) if each.outcome is Outcome.REFUSED]

    def wants_new_plan(self) -> str | None:
        """Why the work has to be planned again, or ``None``."""
        if self.lost:
            return self.lost
        replanned = (
            each.reason
            for each in self.reports
            if each.outcome in (Outcome.REPLAN, Outcome.REFUSED)
        )
        return next(replanned, None)
