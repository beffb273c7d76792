"""Where offsets go travels as it is, each kind of it."""

from __future__ import annotations

import json

import pytest

from headrace.offsets.target import (
    DriverStore,
    OffsetTarget,
    OffsetTopic,
    TargetGroup,
    target_message,
    target_of,
)


@pytest.mark.parametrize(
    "target",
    [
        OffsetTopic(name="worker-offsets"),
        OffsetTopic(name="own", has_secondary=True),
        DriverStore(),
        TargetGroup(group_id="mirror", codec="mirror.positions:Codec", config={"alias": "a"}),
    ],
)
def test_a_target_travels(target: OffsetTarget) -> None:
    """As JSON, and back to the same value."""
    assert target == target_of(json.loads(json.dumps(target_message(target))))
