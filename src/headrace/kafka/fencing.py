"""Ends whatever older producers have open under given transactional ids, and locks them out."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial

from headrace.kafka.client_config import ClientConfig
from headrace.kafka.deadline import Deadline
from headrace.kafka.producer import TrackedProducer, Waiting

# Each is a client with threads and connections of its own, and mostly waits.
_AT_ONCE = 4


def fence(
    config: ClientConfig,
    transactional_ids: Sequence[str],
    deadline: Deadline,
    *,
    waiting: Waiting | None = None,
) -> None:
    """Fence every producer that uses one of *transactional_ids* now.

    On return their transactions have ended and their next call fails. *config* is a producer's; its own
    transactional id does not matter. Raises :class:`~headrace.connect.errors.RetriableError` when that
    was not possible before *deadline*: some may be fenced then, and fencing again does no harm. *waiting*
    is called about once a second from several threads; what it raises ends the attempt in the same way.
    """
    with ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="fence") as threads:
        list(threads.map(partial(_fence_one, config, deadline, waiting), transactional_ids))


def _fence_one(
    config: ClientConfig, deadline: Deadline, waiting: Waiting | None, transactional_id: str
) -> None:
    settings: dict[str, str | int | bool] = {
        **config.settings,
        "transactional.id": transactional_id,
    }
    settings["message.timeout.ms"] = int(config.transaction_timeout_seconds * 1000)
    producer = TrackedProducer(replace(config, settings=settings), waiting=waiting)
    try:
        doing = f"the fencing of {transactional_id!r}"
        producer.persist(producer.raw.init_transactions, doing, deadline)
    finally:
        producer.release()
