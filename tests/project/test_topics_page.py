"""The example of the page about topics is made of it what the page says."""

from __future__ import annotations

import json
import re
from pathlib import Path

from headrace.config.connector_config import ConnectorConfig
from headrace.plugins import checked_worker, validated_connector
from headrace.task.topic_creation import first_group

PAGE = (Path(__file__).parents[2] / "docs" / "topics.md").read_text()
WORKER = {"key.converter": "string", "value.converter": "string"}


def test_the_topics_of_the_example_are_made_as_the_page_says() -> None:
    """It is let in without a warning, and each topic that is named is of its group."""
    (example,) = re.findall(r"```json\n(.*?)```", PAGE, re.DOTALL)
    props = validated_connector(json.loads(example), checked_worker(WORKER))
    groups = ConnectorConfig.parse(props.props).topic_groups

    made = {
        topic: first_group(groups, topic).described(topic).partition(", replicasAssignments")[0]
        for topic in ("orders", "orders-state", "app-log", "tmp-latest")
    }
    settings = {topic: dict(first_group(groups, topic).settings) for topic in made}

    assert () == props.warnings
    assert {
        "orders": "(name=orders, numPartitions=6, replicationFactor=3",
        "orders-state": "(name=orders-state, numPartitions=6, replicationFactor=3",
        "app-log": "(name=app-log, numPartitions=default, replicationFactor=3",
        "tmp-latest": "(name=tmp-latest, numPartitions=6, replicationFactor=3",
    } == made
    assert {
        "orders": {},
        "orders-state": {"cleanup.policy": "compact"},
        "app-log": {"retention.ms": "86400000"},
        "tmp-latest": {},
    } == settings
