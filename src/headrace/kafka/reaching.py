"""The first contact with a cluster: waited for, and told with its address and its reason."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from headrace.connect.errors import RetriableError
from headrace.kafka.admin import UNREACHABLE, KafkaAdmin
from headrace.kafka.client_config import ClientConfig
from headrace.kafka.deadline import Deadline

FIRST_WORD_SECONDS: Final = 2.0
"""A broker that answers later than this is told of."""

AGAIN_SECONDS: Final = 10.0
"""How often it is told of again, in the same words."""


def wait_for_kafka(
    config: ClientConfig,
    deadline: Deadline,
    tell: Callable[[str], None],
    *,
    first_word_seconds: float = FIRST_WORD_SECONDS,
    again_seconds: float = AGAIN_SECONDS,
) -> str:
    """The cluster's id, once a broker has answered; *tell* is given a sentence now and then until then.

    Called once, at a worker's start. Raises
    :class:`~headrace.connect.errors.RetriableError` with the address and the client's last reason after
    *deadline*, and what no waiting mends at once.
    """
    admin = KafkaAdmin(config)
    address = config.settings.get("bootstrap.servers", "")
    patience = first_word_seconds
    while True:
        try:
            return admin.check_reachable(Deadline.after(deadline.remaining(patience)))
        except RetriableError as error:
            reason = admin.last_said or "No broker has answered"
            if deadline.expired:
                raise RetriableError(_unreached(str(address), reason)) from error
            tell(f"Waiting for Kafka at {address}: {reason}")
            patience = again_seconds


def _unreached(address: str, reason: str) -> str:
    return f"Kafka at {address} was not reached: {reason.rstrip('.')}. {UNREACHABLE}"
