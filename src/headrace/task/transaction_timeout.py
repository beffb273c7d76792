"""What is reported of a transaction that timed out (``transaction.timeout.ms``): a retry, or an error that says what to change."""

from __future__ import annotations

from dataclasses import dataclass

from headrace.connect.errors import TransactionTimedOutError
from headrace.task.connector_spec import BoundaryKind


class TransactionTooLongError(TransactionTimedOutError):
    """A retry would take as long, because headrace does not choose where the transaction ends; the task fails."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenTransaction:
    """A transaction that timed out: its *boundary*, and how many *records* were sent in it.

    *held_back* says that a commit was due inside a poll, but not possible because its records share an offset.
    """

    boundary: BoundaryKind
    records: int
    held_back: bool


def too_long_again(
    error: TransactionTimedOutError, was: OpenTransaction
) -> TransactionTooLongError | None:
    """The error that fails the task; ``None`` if the work may be planned again, as for *error*."""
    if error.in_outage or (was.boundary is BoundaryKind.INTERVAL and not was.held_back):
        return None
    whole, advice = _TOO_LONG[was.boundary]
    return TransactionTooLongError(
        f"{error} With transaction.boundary={was.boundary} {whole}. This one was open for "
        f"{error.open_seconds:.0f} s with {was.records} records sent, and transaction.timeout.ms is "
        f"{error.timeout_seconds * 1000:.0f}; a retry would take as long. {advice}",
        open_seconds=error.open_seconds,
        timeout_seconds=error.timeout_seconds,
        in_outage=error.in_outage,
    )


_RAISE = "raise producer.override.transaction.timeout.ms."

_TOO_LONG = {
    BoundaryKind.POLL: (
        "everything that one poll returns is one transaction",
        f"Make each poll return less, remove transaction.boundary, or {_RAISE}",
    ),
    BoundaryKind.CONNECTOR: (
        "a transaction lasts until the connector ends it",
        f"Choose another boundary, make the connector end its transactions earlier, or {_RAISE}",
    ),
    BoundaryKind.INTERVAL: (
        "records of one poll that share a source offset are in one transaction",
        f"Make the connector give each record an offset of its own, or {_RAISE}",
    ),
}


def never_ended(open_seconds: float, timeout_seconds: float) -> str:
    """The error message for a connector's transaction that stayed open while others waited for its slot."""
    whole, advice = _TOO_LONG[BoundaryKind.CONNECTOR]
    return (
        f"The task has not ended its transaction for {open_seconds:.0f} s: with transaction.boundary="
        f"{BoundaryKind.CONNECTOR} {whole}, and transaction.timeout.ms is {timeout_seconds * 1000:.0f}. {advice}"
    )
