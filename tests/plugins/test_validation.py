"""What a validation answers: Kafka Connect's sentences, order, values and counts."""

from __future__ import annotations

import pytest

from headrace.herder.answers import value_text
from headrace.plugins.config_def import refused_null
from plugins.judged import (
    FILE_STREAM,
    JSON,
    errors,
    key,
    validated,
    validator,
)

MISSING = 'Missing required configuration "{}" which has no default value.'


def test_a_misspelt_required_key_is_pointed_at():
    """Behind Kafka Connect's sentence; an unknown key alone is no error."""
    reported = errors(validated({"topics": "t", "mine": "1"}, "topic"))

    assert {"topic": [f"{MISSING.format('topic')} Is 'topics' misspelt?"]} == reported


def test_the_file_source_without_a_topic_is_reported_as_kafka_connect_does():
    """The example of its documentation, field by field."""
    infos = validated({}, "topic")

    assert (FILE_STREAM, 1) == (infos.name, infos.error_count)
    assert [
        "Common",
        "Transforms",
        "Predicates",
        "Error Handling",
        "Topic Creation",
        "Exactly Once Support",
        "offsets.topic",
    ] == [*infos.groups]
    checked = key(infos, "topic")
    setting, value = checked.definition, checked.value
    assert setting is not None
    assert ("topic", "STRING", True, "high") == (
        setting.name,
        setting.type,
        setting.required,
        setting.importance,
    )
    assert value_text(setting.default, setting.type) is None
    assert (None, "NONE", "topic", (), -1) == (
        setting.group,
        setting.width,
        setting.display_name,
        setting.dependents,
        setting.order,
    )
    assert ("topic", None, (), (MISSING.format("topic"),), True) == (
        value.name,
        value.value,
        value.recommended,
        value.errors,
        value.visible,
    )


def test_keys_come_in_kafka_connect_s_order_and_places():
    """The framework's first, with their places in their groups, then the connector's."""
    infos = validated({})
    framework = [each.definition for each in infos.configs if each.definition is not None]
    common = [(each.order, each.name) for each in framework if each.group == "Common"]

    assert sorted(common) == common
    assert [1, *range(2, 12), 14] == [order for order, _ in common]
    names = [each.name for each in framework]
    assert ["name", "connector.class", "connector.plugin.version", "tasks.max"] == names[:4]
    assert names.index("offsets.storage.topic") < names.index("file") < names.index("topic")
    assert {} == errors(infos)


@pytest.mark.parametrize(
    ("name", "value", "reported"),
    [
        (
            "tasks.max",
            "NaN",
            [
                "Invalid value NaN for configuration tasks.max: Not a number of type INT",
                "Invalid value null for configuration tasks.max: Value must be non-null",
            ],
        ),
        (
            "tasks.max",
            "",
            [
                "Invalid value  for configuration tasks.max: Not a number of type INT",
                "Invalid value null for configuration tasks.max: Value must be non-null",
            ],
        ),
        (
            "tasks.max",
            "0",
            ["Invalid value 0 for configuration tasks.max: Value must be at least 1"],
        ),
        (
            "errors.log.enable",
            "perhaps",
            [
                (
                    "Invalid value perhaps for configuration errors.log.enable: "
                    "Expected value to be either true or false"
                )
            ],
        ),
        (
            "errors.tolerance",
            "some",
            [
                (
                    "Invalid value some for configuration errors.tolerance: "
                    "String must be one of: none, all"
                )
            ],
        ),
        (
            "exactly.once.support",
            "maybe",
            [
                (
                    "Invalid value maybe for configuration exactly.once.support: "
                    "String must be one of (case insensitive): REQUIRED, REQUESTED"
                )
            ],
        ),
        ("name", "", ["Invalid value  for configuration name: String may not be empty"]),
        (
            "name",
            "a\tb",
            [
                (
                    "Invalid value a\tb for configuration name: String may not contain control "
                    "sequences but had the following ASCII chars: 9"
                )
            ],
        ),
        ("topic", "", ["Invalid value  for configuration topic: String must be non-empty"]),
        (
            "topic",
            "a b/c",
            ["Invalid value a b/c for configuration topic: A topic's name cannot hold ' '."],
        ),
        (
            "batch.size",
            "0",
            ["Invalid value 0 for configuration batch.size: Value must be at least 1"],
        ),
        (
            "key.converter",
            "nope",
            ["Invalid value nope for configuration key.converter: Class nope could not be found."],
        ),
        (
            "errors.retry.timeout",
            "-5",
            ["Invalid value -5 for configuration errors.retry.timeout: Value must be at least -1"],
        ),
        (
            "config.action.reload",
            "later",
            [
                (
                    "Invalid value later for configuration config.action.reload: "
                    "String must be one of: none, restart"
                )
            ],
        ),
        (
            "topic.creation.default.partitions",
            "x",
            [
                (
                    "Invalid value x for configuration topic.creation.default.partitions: "
                    "Not a number of type INT"
                )
            ],
        ),
        ("topic", None, [refused_null("topic")]),
        ("no one.knows", None, [refused_null("no one.knows")]),
        (
            "tasks.max",
            None,
            [
                "Invalid value null for configuration tasks.max: Value must be non-null",
                refused_null("tasks.max"),
            ],
        ),
    ],
)
def test_a_wrong_value_is_an_error_of_its_key(name: str, value: str | None, reported: list[str]):
    """In the words of Kafka Connect; each message counts."""
    made = {"topic.creation.default.replication.factor": "1"} if "creation" in name else {}
    infos = validated({**made, name: value})

    assert {name: reported} == errors(infos)
    assert len(reported) == infos.error_count


def test_all_problems_are_reported_at_once():
    """One wrong key does not hide another one, be it the connector's, a converter's or a client's."""
    wrong = {
        "tasks.max": "0",
        "topic.creation.groups": "a",
        "topic.creation.default.partitions": "0",
        "transforms": "a",
        "batch.size": "x",
        "key.converter": "json",
        "key.converter.schemas.enable": "x",
        "value.converter": "nope",
        "producer.override.acks": "some",
        "producer.override.linger.ms": "soon",
        "unknown": None,
    }

    missing = {
        "transforms.a.type",
        "topic.creation.a.include",
        "topic.creation.default.replication.factor",
    }
    fine = {"transforms", "key.converter", "topic.creation.groups"}
    assert {*wrong, *missing} - fine == set(errors(validated(wrong)))


def test_undefined_keys_are_not_shown_unless_they_are_wrong():
    """Those come first, without a definition."""
    infos = validated({"taks.max": "1", "nothing": None})

    first = infos.configs[0]
    assert (None, "nothing", None) == (first.definition, first.value.name, first.value.value)
    assert "taks.max" not in [each.value.name for each in infos.configs]


def test_values_are_shown_as_text():
    """Defaults in place of what is missing; a refused value of the right type stays, another one is null."""
    infos = validated(
        {"batch.size": "0", "tasks.max": "x", "value.converter": "json", "key.converter": "nope"}
    )
    shown = {each.value.name: each.value.value for each in infos.configs}

    assert shown["key.converter"] is None
    assert ("0", None, JSON) == (shown["batch.size"], shown["tasks.max"], shown["value.converter"])
    assert ("none", "false", "", None) == (
        shown["errors.tolerance"],
        shown["errors.log.enable"],
        shown["transforms"],
        shown["offsets.storage.topic"],
    )


def test_a_rule_across_settings_names_its_key():
    """In the answer to a creation no one sees which key a sentence belongs to."""
    files = {"name": "c", "connector.class": "files", "topic": "t", "files.path": "/in"}
    infos = validator().validate(
        {**files, "files.compression": "gzip", "files.split.bytes": "10"}, "FilesConnector"
    )

    assert {
        "files.split.bytes": [
            (
                "Invalid value 10 for configuration files.split.bytes: "
                "A compressed file cannot be split."
            )
        ]
    } == errors(infos)
