"""Transactions that outlive ``transaction.timeout.ms``, and what is done about them."""

from __future__ import annotations

import dataclasses
import pickle
from collections.abc import Sequence

import pytest

from doubles.memory_sender import MemorySender
from doubles.puppets import Puppet, numbered, puppet
from headrace.connect.errors import StaleTokenError, TaskFailedError, TransactionTimedOutError
from headrace.connect.partition import SourcePartition
from headrace.connect.task import Polled
from headrace.kafka.sender import EncodedRecords, OffsetEntry
from headrace.task.connector_spec import BoundaryKind
from headrace.task.slot_report import Progress
from headrace.task.transaction_timeout import (
    OpenTransaction,
    TransactionTooLongError,
    too_long_again,
)
from headrace.task.worker_task import WorkerTask
from task.loop import HeldLease
from task.test_worker_task import WORK, Driver, with_settings

POLL, INTERVAL, CONNECTOR = BoundaryKind.POLL, BoundaryKind.INTERVAL, BoundaryKind.CONNECTOR


def late(*, in_outage: bool = False) -> TransactionTimedOutError:
    """What Kafka's side says."""
    return TransactionTimedOutError(
        "It expired.", open_seconds=61.2, timeout_seconds=60.0, in_outage=in_outage
    )


@pytest.mark.parametrize("boundary", BoundaryKind)
@pytest.mark.parametrize("held_back", [True, False])
def test_after_an_outage_the_work_is_planned_again(
    boundary: BoundaryKind, *, held_back: bool
) -> None:
    """Whatever the boundary: the transaction was long because of the broker."""
    was = OpenTransaction(boundary=boundary, records=5, held_back=held_back)

    assert too_long_again(late(in_outage=True), was) is None


def test_a_transaction_that_may_be_shorter_is_planned_again() -> None:
    """An interval ends anywhere, so another one may well be in time."""
    was = OpenTransaction(boundary=INTERVAL, records=5, held_back=False)

    assert too_long_again(late(), was) is None


@pytest.mark.parametrize(
    ("boundary", "held_back", "message"),
    [
        (POLL, False, "everything that one poll returns is one transaction"),
        (CONNECTOR, False, "a transaction lasts until the connector ends it"),
        (INTERVAL, True, "records of one poll that share a source offset are in one transaction"),
    ],
)
def test_a_transaction_that_cannot_be_shorter_says_why(
    boundary: BoundaryKind, message: str, *, held_back: bool
) -> None:
    """The boundary, the time, the records, and what to do; after Connect's advice."""
    was = OpenTransaction(boundary=boundary, records=5, held_back=held_back)

    text = str(too_long_again(late(), was))

    assert text.startswith(f"It expired. With transaction.boundary={boundary} {message}.")
    assert "open for 61 s with 5 records sent, and transaction.timeout.ms is 60000" in text
    assert text.endswith("or raise producer.override.transaction.timeout.ms.")


def test_it_survives_the_way_to_the_driver() -> None:
    """With all that it knows."""
    error = too_long_again(late(), OpenTransaction(boundary=POLL, records=5, held_back=False))
    back = pickle.loads(pickle.dumps(error))

    assert isinstance(back, TransactionTooLongError)
    assert (str(error), 61.2, False) == (str(back), back.open_seconds, back.in_outage)


class LateSender(MemorySender):
    """Finds its transaction ended when it is to be committed."""

    def send(self, records: EncodedRecords) -> None:
        """Refuse what comes second."""
        if self._records:
            raise late()
        super().send(records)

    def send_offsets(self, topic: str, entries: Sequence[OffsetEntry]) -> None:
        """Refuse them."""
        raise late()


def slot(boundary: BoundaryKind, *polls: Polled, valid: bool = True) -> WorkerTask:
    """A slot whose first transaction outlives its time; its token is *valid* then."""
    left = iter([*polls, None])
    puppet("c", Puppet(poll=lambda _: next(left)))
    answers = iter([True, valid])
    return WorkerTask(
        with_settings(WORK, boundary=boundary, commit_seconds=0.0),
        Driver(lambda: next(answers)),  # type: ignore[arg-type]
        HeldLease(),  # type: ignore[arg-type]
        Progress(),
        make_sender=lambda *_, **__: LateSender(),
    )


def test_a_poll_that_outlives_a_transaction_fails_the_task() -> None:
    """With what was sent by then."""
    with pytest.raises(TaskFailedError, match="with 3 records sent"):
        slot(POLL, numbered("t", 0, 3)).run()


def test_an_interval_that_outlives_a_transaction_is_planned_again() -> None:
    """The error is the one that says so."""
    with pytest.raises(TransactionTimedOutError):
        slot(INTERVAL, numbered("t", 0, 3)).run()


def test_an_interval_that_could_not_end_fails_the_task() -> None:
    """Its records have one offset; they are in one transaction whenever it is tried."""
    same = [
        dataclasses.replace(
            numbered(topic, 0, 1), offsets=None, source_partition=SourcePartition(source="s")
        )
        for topic in "tu"
    ]

    with pytest.raises(TaskFailedError, match="share a source offset"):
        slot(INTERVAL, same).run()


def test_a_slot_that_was_replaced_meanwhile_fails_nothing() -> None:
    """A newer owner looks like a late transaction to a slot that was held for long."""
    with pytest.raises(StaleTokenError):
        slot(POLL, numbered("t", 0, 3), valid=False).run()
