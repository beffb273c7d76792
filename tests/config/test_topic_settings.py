"""Groups of topics in a connector's configuration: what is made of them, and what is wrong with them."""

from __future__ import annotations

import pytest

from headrace.config.connector_config import ConnectorConfig
from headrace.config.topic_settings import topic_problems, topic_warnings
from headrace.task.topic_creation import TopicGroup, first_group

DEFAULT = {
    "topic.creation.default.replication.factor": "3",
    "topic.creation.default.partitions": "-1",
}


def config(**settings: str) -> ConnectorConfig:
    """A connector with these settings of groups, ``a__b`` for ``topic.creation.a.b``."""
    given = {
        f"topic.creation.{key.replace('__', '.').replace('_', '.')}": value
        for key, value in settings.items()
    }
    return ConnectorConfig.parse({"name": "c", "connector.class": "files", **DEFAULT, **given})


def reported(made: ConnectorConfig, *, enabled: bool = True) -> dict[str, str]:
    """What is wrong with each key behind ``topic.creation.``."""
    problems = topic_problems(made, enabled=enabled)
    return {key.removeprefix("topic.creation."): sentence for key, sentence in problems}


def test_a_group_has_patterns_numbers_and_settings_of_topics() -> None:
    """What it does not say is the default group's; that one takes every topic, and comes last."""
    made = config(
        groups="logs",
        logs__include="app-.*, sys-.*",
        logs__exclude="app-secret",
        logs__partitions="6",
        logs__cleanup_policy="compact",
    )

    logs, default = made.topic_groups

    assert default == TopicGroup(name="default", include=(".*",), partitions=-1, replicas=3)
    assert logs == TopicGroup(
        name="logs",
        include=("app-.*", "sys-.*"),
        exclude=("app-secret",),
        partitions=6,
        replicas=3,
        settings={"cleanup.policy": "compact"},
    )


@pytest.mark.parametrize(
    ("topic", "group"),
    [("app", "first"), ("app-1", "second"), ("app-secret", "default"), ("my-app", "default")],
)
def test_the_first_group_whose_patterns_match_the_whole_name_counts(topic: str, group: str) -> None:
    """What a group leaves out goes to the next one, at last to the default group."""
    made = config(
        groups="first,second",
        first__include="app",
        second__include="app.*",
        second__exclude=".*secret",
    )

    assert group == first_group(made.topic_groups, topic).name


def test_without_any_of_these_settings_no_topic_is_made() -> None:
    """The broker makes them, or no one."""
    plain = ConnectorConfig.parse({"name": "c", "connector.class": "files"})

    assert ((), {}) == (plain.topic_groups, reported(plain))


def test_the_default_groups_numbers_are_required() -> None:
    """As soon as any such setting is there, in Kafka Connect's words and order."""
    made = ConnectorConfig.parse(
        {"name": "c", "connector.class": "files", "topic.creation.groups": ""}
    )

    assert [
        ("default.replication.factor", _missing("default.replication.factor")),
        ("default.partitions", _missing("default.partitions")),
    ] == [*reported(made).items()]


def _missing(key: str) -> str:
    return f'Missing required configuration "topic.creation.{key}" which has no default value.'


@pytest.mark.parametrize(
    ("key", "value", "complaint"),
    [
        (
            "default.partitions",
            "0",
            "Number of partitions must be positive, or -1 to use the broker",
        ),
        ("g.replication.factor", "-2", "Replication factor must be positive and not larger than"),
        ("g.partitions", "x", "Not a number of type INT"),
        ("g.include", "ok,a(", "Syntax error in regular expression: "),
        ("g.exclude", "[", "Syntax error in regular expression: "),
    ],
)
def test_a_wrong_setting_of_a_group_is_an_error_of_its_key(
    key: str, value: str, complaint: str
) -> None:
    """In Kafka Connect's words; there its connector fails when it starts."""
    made = config(**{"groups": "g", "g__include": "a", key.replace(".", "__", 1): value})

    assert [key] == [*reported(made)]
    assert reported(made)[key].startswith(
        f"Invalid value {value} for configuration topic.creation.{key}: {complaint}"
    )


def test_a_group_without_patterns_is_wrong() -> None:
    """It would never take a topic."""
    assert {"g.include": _missing("g.include")} == reported(config(groups="g"))


def test_a_group_is_named_once() -> None:
    """The sentence is Kafka Connect's; it counts even where the worker makes no topics."""
    made = config(groups="a,a", a__include="x")

    assert {
        "groups": "Invalid value [a, a] for configuration topic.creation.groups: Duplicate alias provided."
    } == reported(made, enabled=False)


def test_a_worker_may_have_it_switched_off() -> None:
    """Then nothing but names is looked at, and a warning says so."""
    made = config(default__partitions="0")

    (warning,) = topic_warnings(made, enabled=False)

    assert {} == reported(made, enabled=False)
    assert "topic.creation.enable=false" in warning


def test_what_has_no_effect_on_the_default_group_is_reported() -> None:
    """It takes every topic, and is always the last one."""
    made = config(groups="default", default__include="x")

    assert ["default"] == [each.name for each in made.topic_groups]
    assert [True, True] == ["no effect" in each for each in topic_warnings(made, enabled=True)]
    assert "x" not in made.topic_groups[0].include
