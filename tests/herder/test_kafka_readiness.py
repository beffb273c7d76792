"""What those are told who wait for Kafka in vain."""

from __future__ import annotations

from typing import Any

import pytest

from headrace.connect.errors import ConnectError
from headrace.herder.errors import ServerError
from headrace.herder.services import KafkaReadiness


@pytest.mark.parametrize(
    ("failure", "told"),
    [
        (None, "still starting up: Kafka has not been reached yet. Retry later.$"),
        (ConnectError("Kafka is away."), "still starting up: Kafka is away.$"),
        (ServerError("Worker is shutting down"), "^Worker is shutting down$"),
    ],
)
def test_the_reason_is_reported_once(failure: Exception | None, told: str) -> None:
    """A worker that ends says so, and not that it is starting."""
    readiness = KafkaReadiness(wait_seconds=0)
    if failure is not None:
        readiness.refuse(failure)

    with pytest.raises(ServerError, match=told):
        readiness.kafka()


def test_a_late_kafka_is_not_waited_for() -> None:
    """A request is told why at once; and has it as soon as it is there."""
    readiness = KafkaReadiness(wait_seconds=60)
    readiness.put_off(ConnectError("Kafka is away."))
    with pytest.raises(ServerError, match=r"still starting up: Kafka is away\.$"):
        readiness.kafka()

    kafka: Any = object()
    readiness.open(kafka)
    assert kafka is readiness.kafka()
    assert readiness.delay is None
