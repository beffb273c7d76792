"""What a validation appends: settings of converters, and overrides of clients."""

from __future__ import annotations

from headrace.plugins.config_def import refused_null
from plugins.judged import (
    JSON,
    errors,
    key,
    validated,
)

NO_PASSWORD = "A secret of the test"


def test_the_worker_s_converters_are_the_defaults_of_the_connector_s():
    """By their full names; and what else there is is recommended."""
    checked = key(validated({}), "value.converter")

    assert checked.definition is not None
    named = "org.apache.kafka.connect.storage.StringConverter"
    assert (named, named) == (checked.definition.default, checked.value.value)
    assert JSON in checked.value.recommended


def test_settings_of_a_named_converter_are_appended():
    """With its prefix and its groups; each key counts once, whatever is wrong with it."""
    infos = validated({"key.converter": "json", "key.converter.schemas.cache.size": "x"})

    assert [
        f"key.converter.{name}"
        for name in (
            "decimal.format",
            "converter.type",
            "schemas.cache.size",
            "replace.null.with.default",
            "schemas.enable",
            "schema.content",
        )
    ] == [each.value.name for each in infos.configs[-6:]]
    assert ("Serialization", "Schemas") == infos.groups[-2:]
    assert 1 == infos.error_count
    assert [
        "Invalid value x for configuration schemas.cache.size: Not a number of type INT"
    ] == errors(infos)["key.converter.schemas.cache.size"]


def test_a_key_of_a_converter_counts_once_with_all_its_messages():
    """As Kafka Connect counts them."""
    infos = validated(
        {
            "key.converter": "json",
            "key.converter.decimal.format": None,
            "value.converter": "avro",
            "value.converter.schema.registry.url": "http://localhost:1",
            "value.converter.max.retries": "x",
        }
    )

    assert {
        "key.converter.decimal.format": [
            (
                "Invalid value null for configuration decimal.format: String must be one of "
                "(case insensitive): BASE64, NUMERIC"
            ),
            refused_null("decimal.format"),
        ],
        "value.converter.max.retries": [
            "Invalid value x for configuration max.retries: Not a number of type INT",
        ],
    } == errors(infos)
    assert 2 == infos.error_count


def test_the_version_of_a_named_converter_is_no_setting_of_the_converter():
    """It is reported at its own key and at the class."""
    infos = validated({"key.converter": "json", "key.converter.plugin.version": "1"})

    assert ["key.converter", "key.converter.plugin.version"] == [*errors(infos)]
    assert key(infos, "key.converter.plugin.version").definition is not None


def test_what_is_missing_by_a_rule_is_reported_with_its_key():
    """As Kafka tells of null."""
    avro = {
        "value.converter": "avro",
        "value.converter.schema.registry.url": "http://localhost:1",
        "value.converter.basic.auth.credentials.source": "USER_INFO",
    }

    assert [
        (
            "Invalid value null for configuration value.converter.basic.auth.user.info: It is needed, "
            "because basic.auth.credentials.source is USER_INFO."
        )
    ] == errors(validated(avro))["value.converter.basic.auth.user.info"]


def test_a_converter_of_the_worker_brings_no_keys_along():
    """Its settings are the worker's."""
    names = [each.value.name for each in validated({}).configs]

    assert "key.converter.schemas.enable" not in names


def test_overrides_of_clients_are_appended_without_their_secrets():
    """Producer, consumer, admin, in this order, before converters."""
    infos = validated(
        {
            "admin.override.client.id": "a",
            "key.converter": "string",
            "producer.override.sasl.jaas.config": NO_PASSWORD,
            "producer.override.linger.ms": "5",
        }
    )

    shown = [(each.value.name, each.value.value) for each in infos.configs[-5:]]
    assert [
        ("producer.override.sasl.jaas.config", "[hidden]"),
        ("producer.override.linger.ms", "5"),
        ("admin.override.client.id", "a"),
        ("key.converter.converter.type", "key"),
        ("key.converter.converter.encoding", "UTF-8"),
    ] == shown


def test_a_wrong_override_is_an_error_of_its_key():
    """Kafka Connect finds it when the task starts."""
    found = errors(validated({"producer.override.acks": "some"}))

    assert ["producer.override.acks"] == list(found)
    assert "Invalid value some for configuration producer.override.acks: " in str(found)
