"""What a bounded read says before it asks anyone."""

from __future__ import annotations

import pytest

from headrace.connect.errors import RetriableError
from headrace.spark.kafka.bounded import KafkaReader
from headrace.spark.kafka.subscription import checked_options


@pytest.mark.parametrize("given", [True, False], ids=["given", "not given"])
def test_e51_an_interval_of_a_bounded_read_is_warned_about(
    caplog: pytest.LogCaptureFixture, *, given: bool
) -> None:
    """It has no effect."""
    interval = {"partition.discovery.interval.ms": "5000"} if given else {}
    nowhere = {
        "kafka.bootstrap.servers": "127.0.0.1:1",
        "kafka.default.api.timeout.ms": "1",
        "subscribe": "t",
    }
    reader = KafkaReader(checked_options(nowhere | interval))

    with pytest.raises(RetriableError):
        reader.partitions()
    assert given is any(
        "has no effect: a bounded source" in each.message for each in caplog.records
    )
