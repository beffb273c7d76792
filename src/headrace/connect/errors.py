"""Every error of headrace, classified by what the code that catches it does next.

    ConnectError
    ├── ConfigError          the user's configuration: show every problem, start nothing
    ├── OffsetsError         offsets that a connector refuses: show the reason, write nothing
    ├── RetriableError       try the same again, after .delay_seconds if given
    ├── RecordError          this record only: fail, skip or dead-letter, as configured
    ├── ReplanError          drop the producer, read the store, plan again
    │   ├── FencedError          a newer owner of the transactional id exists
    │   ├── TransactionTimedOutError
    │   └── StaleTokenError      this copy of a slot may not write
    └── TaskFailedError      stop the task, show the reason
        ├── PartitionError       this source partition only: plan again without it
        └── ConnectorFencedError another worker runs the connector: stop, do not restart

All of them survive pickling, because they cross from Spark's Python processes to the driver.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Self

from headrace.connect.partition import SourceOffset, SourcePartition
from headrace.connect.record import BadRecord


class ConnectError(Exception):
    """Root of every error that headrace raises on purpose."""

    def __init__(self, message: str) -> None:
        super().__init__(message)

    def __reduce__(self) -> tuple[object, ...]:
        return _rebuilt, (type(self), self.args, self.__dict__)


def _rebuilt(
    kind: type[ConnectError], args: tuple[object, ...], attributes: dict[str, object]
) -> ConnectError:
    error = kind.__new__(kind, *args)
    error.args = args
    error.__dict__.update(attributes)
    return error


class ConfigError(ConnectError):
    """A configuration has problems; *problems* holds one ``(key, sentence)`` for each of them.

    *warnings* are sentences about settings that are accepted but suspicious: they help to find the cause of a problem.
    """

    def __init__(
        self,
        problems: Sequence[tuple[str, str]],
        *,
        where: str = "",
        warnings: Sequence[str] = (),
    ) -> None:
        self.problems = tuple(problems)
        self.warnings = tuple(warnings)
        lines = [f"{where or 'The configuration'} has {_counted(self.problems, 'problem')}:"]
        lines += [f"  {key}: {sentence}" for key, sentence in self.problems]
        if self.warnings:
            lines.append(f"and {_counted(self.warnings, 'warning')}:")
            lines += [f"  {sentence}" for sentence in self.warnings]
        super().__init__("\n".join(lines))

    @classmethod
    def together(cls, errors: Sequence[ConfigError]) -> ConfigError:
        """One error with the problems of all *errors*, each listed under its own ``where``."""
        joined = cls([problem for error in errors for problem in error.problems])
        joined.args = ("\n".join(str(error) for error in errors),)
        return joined


def _counted(what: Sequence[object], noun: str) -> str:
    return f"{len(what)} {noun if len(what) == 1 else f'{noun}s'}"


class OffsetsError(ConnectError):
    """A connector's hook refuses these offsets; nothing has been written."""


class RetriableError(ConnectError):
    """A failure that may be over a little later, such as a broker that is away."""

    def __init__(self, message: str, *, delay_seconds: float | None = None) -> None:
        self.delay_seconds = delay_seconds
        super().__init__(message)


class RecordError(ConnectError):
    """One record cannot be read, converted or sent.

    *native_key* names the object that holds it (a file's path), *position* its place in there, *row* its
    index within the batch that was being worked on, when those are known. *advice* is one sentence that
    says what to do. *bad* is the record itself and the offset after it: without it the runtime cannot continue
    after the record, so the task fails, whatever ``errors.tolerance`` says.
    """

    def __init__(
        self,
        reason: str,
        *,
        native_key: str | None = None,
        position: str | None = None,
        row: int | None = None,
        advice: str | None = None,
        bad: BadRecord | None = None,
    ) -> None:
        self.reason = reason
        self.native_key = native_key
        self.position = position
        self.row = row
        self.advice = advice
        self.bad = bad
        super().__init__(_full_message(self))

    def located(self, native_key: str, position: str) -> Self:
        """The same error with a place, for a layer that knows where the failed row came from."""
        error = copy.copy(self)
        error.native_key = self.native_key or native_key
        error.position = self.position or position
        error.args = (_full_message(error),)
        return error

    def about(self, bad: BadRecord) -> Self:
        """The same error with the bad record."""
        error = copy.copy(self)
        error.bad = bad
        return error


def _full_message(error: RecordError) -> str:
    place = ", ".join(part for part in (error.native_key, error.position) if part)
    message = f"{place}: {error.reason}" if place else error.reason
    return f"{message} {error.advice}" if error.advice else message


class ReplanError(ConnectError):
    """The work of this slot no longer counts: drop the producer, read the store, plan again."""


class FencedError(ReplanError):
    """A newer owner of the transactional id has taken over."""


class TransactionTimedOutError(ReplanError):
    """The broker ended a transaction that stayed open longer than ``transaction.timeout.ms``.

    It was open for *open_seconds*; *timeout_seconds* are allowed. *in_outage* says that the broker was
    away meanwhile, so that the next transaction may well be faster.
    """

    def __init__(
        self, message: str, *, open_seconds: float, timeout_seconds: float, in_outage: bool
    ) -> None:
        self.open_seconds = open_seconds
        self.timeout_seconds = timeout_seconds
        self.in_outage = in_outage
        super().__init__(message)


class StaleTokenError(ReplanError):
    """The token of this copy of a slot was claimed before, withdrawn, or never granted."""


class TaskFailedError(ConnectError):
    """The task cannot continue; an operator has to look at the reason."""


class PartitionError(TaskFailedError):
    """The source partition *partition* cannot be read on, and others can.

    Raised by ``poll`` of a planned connector's task, after it has returned everything that comes before; and by the runtime, when a
    record batch that ``poll`` has returned unopened turns out to be damaged. What comes before is committed, the tasks of the
    micro-batch end, and the connector is asked for a plan without the partition
    (:attr:`~headrace.connect.connector.PlanRequest.failed`). A task of a polled connector fails.

    *source_offset* is the one after what cannot be read, where that is known: a task that resumes there skips it.
    """

    def __init__(
        self,
        partition: SourcePartition,
        reason: str,
        *,
        source_offset: SourceOffset | None = None,
    ) -> None:
        self.partition = partition
        self.source_offset = source_offset
        super().__init__(reason)


class ConnectorFencedError(TaskFailedError):
    """Another worker has become the connector's writer: stop, and do not restart, which would fence that one."""
