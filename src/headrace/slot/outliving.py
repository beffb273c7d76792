"""Transactions that outlive ``transaction.timeout.ms``: which ones are worth another try; pure."""

from __future__ import annotations

from dataclasses import dataclass

from headrace.connect.errors import TransactionTimedOutError
from headrace.slot.work import BoundaryKind


class TransactionTooLongError(TransactionTimedOutError):
    """It would be as long again, because where it ends is not ours to say: a person has to look at it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenTransaction:
    """What a transaction was: the *boundary* it went to, and the *records* that were sent in it so far.

    *held_back* says that its time was over within a poll, where no offset lay between two records.
    """

    boundary: BoundaryKind
    records: int
    held_back: bool


def too_long_again(
    error: TransactionTimedOutError, was: OpenTransaction
) -> TransactionTooLongError | None:
    """The error that a person has to see; ``None`` where the work may be planned again, as *error* says."""
    if error.in_outage or (was.boundary is BoundaryKind.INTERVAL and not was.held_back):
        return None
    whole, advice = _TOO_LONG[was.boundary]
    return TransactionTooLongError(
        f"{error} With transaction.boundary={was.boundary} {whole}. This one was open for "
        f"{error.open_seconds:.0f} s with {was.records} records sent, and transaction.timeout.ms is "
        f"{error.timeout_seconds * 1000:.0f}; it would be as long when it is tried again. {advice}",
        open_seconds=error.open_seconds,
        timeout_seconds=error.timeout_seconds,
        in_outage=error.in_outage,
    )


_RAISE = "set producer.override.transaction.timeout.ms to more."

_TOO_LONG = {
    BoundaryKind.POLL: (
        "all that one poll returns is one transaction",
        f"Have each poll return less, leave transaction.boundary out, or {_RAISE}",
    ),
    BoundaryKind.CONNECTOR: (
        "a transaction goes on until the connector ends it",
        f"Choose another boundary, have the connector end its transactions earlier, or {_RAISE}",
    ),
    BoundaryKind.INTERVAL: (
        "records of one poll that share a source offset are in one transaction",
        f"Have the connector give its records offsets of their own, or {_RAISE}",
    ),
}


def never_ended(open_seconds: float, timeout_seconds: float) -> str:
    """What a person has to see of a connector's transaction that was open while others waited for its slot."""
    whole, advice = _TOO_LONG[BoundaryKind.CONNECTOR]
    return (
        f"The task has not ended its transaction for {open_seconds:.0f} s: with transaction.boundary="
        f"{BoundaryKind.CONNECTOR} {whole}, and transaction.timeout.ms is {timeout_seconds * 1000:.0f}. {advice}"
    )
