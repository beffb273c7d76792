"""A broker that does not answer at the start."""

from __future__ import annotations

import socket
from collections.abc import Iterator

import pytest

from headrace.connect.errors import RetriableError
from headrace.kafka.admin import UNREACHABLE
from headrace.kafka.client_config import client_config
from headrace.kafka.deadline import Deadline
from headrace.worker.services import wait_for_kafka


@pytest.mark.parametrize(
    ("address", "reason"),
    [
        ("127.0.0.1:9", "Connection refused"),
        ("nohost.invalid:9092", "Failed to resolve 'nohost.invalid:9092'"),
    ],
)
def test_waiting_is_reported_with_address_and_reason(address: str, reason: str) -> None:
    """Soon, again now and then, and in the end."""
    reported: list[str] = []

    with pytest.raises(RetriableError) as caught:
        wait_for_kafka(
            client_config({"bootstrap.servers": address}),
            Deadline.after(1.2),
            reported.append,
            first_report_seconds=0.3,
            repeat_seconds=0.3,
        )

    assert len(reported) > 1
    assert all(each.startswith(f"Waiting for Kafka at {address}: ") for each in reported)
    assert reason in reported[-1]
    assert str(caught.value).startswith(f"Kafka at {address} was not reached: ")
    assert reason in str(caught.value)


@pytest.fixture
def silent() -> Iterator[str]:
    """The address of a program that is no broker."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield f"127.0.0.1:{server.getsockname()[1]}"


def test_what_waits_for_the_cluster_is_reported_once(silent: str) -> None:
    """A port that takes connections and says nothing."""
    reported: list[str] = []

    with pytest.raises(RetriableError) as caught:
        wait_for_kafka(
            client_config({"bootstrap.servers": silent}),
            Deadline.after(1.2),
            reported.append,
            first_report_seconds=0.3,
        )

    reason = f"{silent} (bootstrap.servers) did not answer in time"
    assert [f"Waiting for Kafka at {silent}: {reason}."] == reported
    assert 1 == str(caught.value).count(UNREACHABLE)
