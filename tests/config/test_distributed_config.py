"""The settings of a worker of a group."""

from __future__ import annotations

import pytest

from headrace.config.distributed_config import DistributedConfig
from headrace.task.connector_spec import Delivery

_LEAST = {
    "bootstrap.servers": "localhost:9092",
    "key.converter": "string",
    "value.converter": "string",
    "group.id": "g",
    "offset.storage.topic": "o",
    "config.storage.topic": "c",
    "status.storage.topic": "s",
}


@pytest.mark.parametrize(
    ("support", "delivery", "fences"),
    [
        (None, Delivery.EXACTLY_ONCE, True),
        ("enabled", Delivery.EXACTLY_ONCE, True),
        ("preparing", Delivery.AT_LEAST_ONCE, True),
        ("disabled", Delivery.AT_LEAST_ONCE, False),
    ],
)
def test_a_group_is_prepared_for_exactly_once(
    support: str | None, delivery: Delivery, *, fences: bool
) -> None:
    """With ``preparing`` the leader writes in transactions already, and tasks do not, as in Kafka Connect."""
    given = {} if support is None else {"exactly.once.source.support": support}

    config = DistributedConfig.parse({**_LEAST, **given})

    assert (delivery, fences) == (config.delivery, config.fences_leaders)
