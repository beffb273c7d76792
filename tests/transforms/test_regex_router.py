"""RegexRouter, as Kafka Connect does it."""

from __future__ import annotations

import pytest

from headrace.transforms.catalogue import make_transform
from headrace.transforms.regex_router import RegexRouterConfig
from transforms.generated import record


@pytest.mark.parametrize(
    ("regex", "replacement", "topic"),
    [
        ("(t)(o)p", "$2$1", "ot"),
        ("to", "x", "top"),
        ("t|top", "X", "Xop"),
        ("(?<n>t).*", "${n}", "t"),
        (".*", "", ""),
    ],
)
def test_a_topic_that_matches_as_a_whole_has_its_first_match_replaced(
    regex: str, replacement: str, topic: str
) -> None:
    """Another one keeps its name."""
    made = make_transform("RegexRouter", {"regex": regex, "replacement": replacement})
    after = made.apply(record("v"))

    assert after is not None
    assert topic == after.topic


@pytest.mark.parametrize(
    ("regex", "replacement", "key", "reported"),
    [
        ("[", "x", "regex", "Invalid value [ for configuration regex: Invalid regex: "),
        ("(t)", "$2", "replacement", "Invalid value $2 for configuration replacement: No group 2"),
    ],
)
def test_what_cannot_work_is_reported(
    regex: str, replacement: str, key: str, reported: str
) -> None:
    """Before a connector starts, and not with its first record."""
    ((named, sentence),) = RegexRouterConfig.problems({"regex": regex, "replacement": replacement})

    assert key == named
    assert sentence.startswith(reported)
