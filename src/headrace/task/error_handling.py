"""Retries, skips, counts and logs records that cannot be read, converted or sent, as ``errors.*`` says (KIP-298)."""

from __future__ import annotations

import logging
import random
import time
from collections.abc import Callable
from typing import TypeVar

from headrace.connect.errors import (
    ConnectError,
    PartitionError,
    RecordError,
    RetriableError,
    TaskFailedError,
)
from headrace.kafka.batches.errors import CorruptBatchError
from headrace.kafka.refused_records import RefusedError, RefusedRecords
from headrace.kafka.sender import Sender, TooLargeError
from headrace.observe.secret_masking import Secrets
from headrace.task.channel import Lease
from headrace.task.connector_spec import ErrorPolicy
from headrace.task.dead_letters import DeadLetters, SkippedRecord
from headrace.task.frames import Place
from headrace.task.slot_report import Progress
from headrace.task.slot_work import SlotWork
from headrace.task.transactions import CommitStrategy

_log = logging.getLogger(__name__)

_SHOWN_BYTES = 2_000
_NOT_ONE_RECORD = "errors.tolerance=all does not apply: this error is not about a single record that could be skipped."
_TOO_LATE = (
    "errors.tolerance=all does not apply, because the record was refused only after it had been handed over together with "
    "others. Lower max.request.size of this producer to the topic's max.message.bytes: larger records are then "
    "skipped before they are sent."
)
_FIRST_SECONDS = 0.3


class ErrorTolerance:
    """Skips bad records of one slot, or sends them as dead letters. Used by the writer.

    Dead letters are committed or aborted together with the records around them.
    """

    def __init__(
        self,
        policy: ErrorPolicy,
        progress: Progress,
        *,
        sender: Sender,
        commits: CommitStrategy,
        connector: str,
        task: int,
        secrets: Secrets | None = None,
    ) -> None:
        self._policy = policy
        self._progress = progress
        self._sender = sender
        self._commits = commits
        self._owner = f"{connector}-{task}"
        self._letters: DeadLetters | None = None
        if policy.dead_letters is not None:
            self._letters = DeadLetters(
                topic=policy.dead_letters,
                context=policy.headers,
                connector=connector,
                task=task,
                secrets=secrets or Secrets(),
            )
        self._waiting = 0
        self._quarantined = 0

    @property
    def is_on(self) -> bool:
        """Whether bad records are skipped."""
        return self._policy.tolerate

    def skip(self, record: SkippedRecord) -> None:
        """Send the record's dead letter, or skip it. Raises ``TaskFailedError`` when the letter is refused."""
        self._progress.record_errors += 1
        if self._letters is not None:
            self._commits.before_records(self._letters.topic)
            self._send(self._letters, record)
        self._waiting += 1
        self._quarantined += record.bad.quarantines
        where = self._policy.dead_letters
        fate = (
            f"The record is sent to the dead letter topic {where!r}."
            if where
            else "The record is skipped."
        )
        self._note(record.error, record.stage, record.class_name, record.bad.raw, fate=fate)

    def pass_over(self, refused: RefusedRecords, by: str) -> None:
        """Skip copied records that *by* could not write, or send their dead letters: one for each, or the bytes of a damaged batch.

        Their place is logged in any case: one line for all of them.
        """
        where = self._policy.dead_letters
        _log.warning(
            "Task %s passes over the offsets %d to %d of %s, %s (errors.tolerance=all). %s",
            self._owner,
            refused.first,
            refused.last,
            refused.place,
            f"which are sent to the dead letter topic {where!r}" if where else "which are skipped",
            refused.error,
        )
        for key, error in refused.errors():
            assert error.bad is not None
            self.skip(
                SkippedRecord(
                    error=error,
                    bad=error.bad,
                    stage=stage_of(refused.error),
                    class_name=by,
                    key=key,
                )
            )

    def failing(self, error: ConnectError, *, stage: str, by: str, raw: bytes | None) -> None:
        """Count and log *error*, about a record that holds *raw*, which is about to fail the task."""
        self._progress.record_errors += 1
        self._note(error, stage, by, raw, fate="It fails the task.")

    def committed(self) -> None:
        """Count what was skipped since the last commit as committed."""
        if self._letters is None:
            self._progress.skipped += self._waiting
        else:
            self._progress.dead_lettered += self._waiting
        self._progress.quarantined += self._quarantined
        self._waiting = self._quarantined = 0

    def dropped(self) -> None:
        """Forget what was skipped: its transaction was aborted on the connector's request."""
        self._waiting = self._quarantined = 0

    def too_late(self, error: ConnectError) -> ConnectError:
        """*error* of the broker; if errors are tolerated, with the reason why this one is not."""
        return TaskFailedError(f"{error} {_TOO_LATE}") if self.is_on else error

    def _send(self, letters: DeadLetters, record: SkippedRecord) -> None:
        refused: RecordError = record.error
        for letter in letters.attempts(record):
            try:
                self._sender.send(letter)
            except TooLargeError as error:
                refused = error
            except RecordError as error:
                refused = error
                break
            else:
                return
        self._progress.dead_letters_failed += 1
        raise _unsent(letters.topic, refused, record) from refused

    def _note(
        self, error: ConnectError, stage: str, by: str, raw: bytes | None, *, fate: str
    ) -> None:
        """Log an error of a record, if ``errors.log.enable`` is set."""
        if not self._policy.log:
            return
        self._progress.errors_logged += 1
        shown = ""
        if self._policy.log_content and raw is not None:
            shown = f" The record holds {raw[:_SHOWN_BYTES]!r}."
        _log.warning(
            "Error encountered in task %s. Executing stage '%s' with class '%s'. %s %s%s",
            self._owner,
            stage,
            by,
            str(error).removesuffix(".") + ".",
            fate,
            shown,
        )


def _unsent(topic: str, error: RecordError, record: SkippedRecord) -> TaskFailedError:
    return TaskFailedError(
        f"The dead letter of a record cannot be sent to topic {topic!r}: {error} The record's error is: {record.error}"
    )


def stage_of(error: RefusedError) -> str:
    """The stage (KIP-298) in which copied records have failed: damaged ones were so when they were polled."""
    return "TASK_POLL" if isinstance(error, CorruptBatchError) else "KAFKA_PRODUCE"


def untolerated(error: Exception) -> Exception:
    """*error* of ``poll``, with the reason why it is not tolerated although others are."""
    if not isinstance(error, RecordError | TaskFailedError):
        return error
    sentence = f"{error} {_NOT_ONE_RECORD}"
    if isinstance(error, PartitionError):
        explained = PartitionError(error.partition, sentence, source_offset=error.source_offset)
    else:
        explained = TaskFailedError(sentence)
    explained.__cause__ = error
    return explained


_T = TypeVar("_T")

Wait = Callable[[float, Place | None], None]
"""Waits so many seconds before the next attempt; the place is the source position of the first row that waits."""


class RetryWithBackoff:
    """Retries calls that raise :class:`~headrace.connect.errors.RetriableError`; used by the slot's thread.

    *wait* may return early when the slot should end. *progress* records the reason for waiting and the number of
    retries. Without ``errors.retry.timeout`` the error is raised unchanged: the work is then planned again, which
    loses nothing and needs no limit.
    """

    def __init__(
        self,
        policy: ErrorPolicy,
        progress: Progress,
        *,
        wait: Wait,
        ending: Callable[[], bool],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._timeout = policy.retry_seconds
        self._progress = progress
        self._most_delay = policy.retry_delay_seconds
        self._wait = wait
        self._ending = ending
        self._clock = clock

    def call(self, attempt: Callable[[], _T], waits_from: Callable[[], Place | None]) -> _T:
        """What *attempt* finally returns; no row from the position *waits_from* on has been written yet.

        Raises :class:`~headrace.connect.errors.RecordError` for the first row after the timeout, so that
        ``errors.tolerance`` decides; ``RetriableError`` when the slot should end before.
        """
        if self._timeout == 0:
            return attempt()
        deadline = None if self._timeout is None else self._clock() + self._timeout
        delay = _FIRST_SECONDS
        while True:
            try:
                done = attempt()
            except RetriableError as error:
                self._wait(self._pause(error, delay, deadline), waits_from())
                self._progress.retries += 1
                delay *= 2
            else:
                if delay > _FIRST_SECONDS:
                    self._progress.waiting_for = None
                return done

    def _pause(self, error: RetriableError, delay: float, deadline: float | None) -> float:
        """Seconds to wait after *error*, which is noted in the progress; raises when there is no further attempt."""
        left = None if deadline is None else deadline - self._clock()
        if left is not None and left <= 0:
            raise RecordError(
                f"{error} Retries ended after {self._timeout:g} s (errors.retry.timeout).", row=0
            ) from error
        if self._ending():
            raise error
        self._progress.waiting_for = str(error) or type(error).__name__
        delay = self._bounded(delay)
        return delay if left is None else min(delay, left)

    def _bounded(self, delay: float) -> float:
        """*delay* up to the maximum, beyond it a random delay below the maximum, as in Kafka Connect."""
        return delay if delay <= self._most_delay else random.uniform(0, self._most_delay)


def retrying_in(
    work: SlotWork, lease: Lease, progress: Progress, meanwhile: Callable[[Place | None], object]
) -> RetryWithBackoff:
    """The retries of a slot with *work*, until its *lease* ends it.

    *meanwhile* is called before each wait, with the source position of the first row that waits.
    """

    def wait(seconds: float, waits_from: Place | None) -> None:
        meanwhile(waits_from)
        lease.wait(seconds)

    return RetryWithBackoff(work.spec.errors, progress, wait=wait, ending=lease.should_end)
