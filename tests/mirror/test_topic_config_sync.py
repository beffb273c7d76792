"""Which settings remote topics get."""

from __future__ import annotations

from headrace.kafka.topic_admin import TopicSetting
from headrace.mirror.filters import property_filter
from headrace.mirror.topic_config_sync import (
    necessary_settings,
    settings_at_creation,
    settings_changed,
    settings_differing,
    settings_of_existing,
)

NO_LIMIT = "9223372036854775807"
OWN = TopicSetting("5", is_own=True)
DEFAULT = TopicSetting("9", is_own=False, is_default=True)
BROKERS = TopicSetting("700", is_own=False, is_static=True)


def test_a_topics_own_settings_are_copied_and_defaults_are_reset():
    """What its brokers have in their files is theirs."""
    chosen = property_filter({})
    source = {"retention.ms": OWN, "segment.bytes": DEFAULT, "max.message.bytes": BROKERS}
    assert settings_at_creation(source, chosen) == {"retention.ms": "5"}
    assert settings_changed(source, chosen) == {"retention.ms": "5", "segment.bytes": None}


def test_defaults_of_the_source_are_copied_if_they_are_to_be():
    """So that both topics are the same although their clusters differ."""
    chosen = property_filter({"use.defaults.from": "source"})
    source = {"retention.ms": OWN, "segment.bytes": DEFAULT}
    expected = {"retention.ms": "5", "segment.bytes": "9"}
    assert settings_at_creation(source, chosen) == expected
    assert settings_changed(source, chosen) == expected


def test_remote_topics_take_what_their_source_topics_took():
    """Records of any time, as large as the source's brokers allow; what the target does not know is left out."""
    known = {"max.message.bytes", "message.timestamp.before.max.ms", "message.timestamp.type"}
    always = {
        "message.timestamp.before.max.ms": NO_LIMIT,
        "message.timestamp.type": "CreateTime",
    }
    source = {"max.message.bytes": BROKERS, "message.timestamp.before.max.ms": OWN}
    assert necessary_settings(source, known) == {"max.message.bytes": "700", **always}
    assert necessary_settings({"max.message.bytes": DEFAULT}, known) == always


def test_a_remote_topic_that_exists_keeps_what_it_needs_and_nothing_that_its_source_topic_lost():
    """Also where the source's brokers have another value than Kafka's default in their files."""
    chosen = property_filter({"config.properties.exclude": "segment.*"})
    source = {"retention.ms": BROKERS, "segment.bytes": BROKERS, "message.timestamp.type": OWN}
    assert settings_of_existing(source, chosen, {"message.timestamp.type"}) == {
        "retention.ms": None,
        "message.timestamp.type": "CreateTime",
    }


def test_nothing_is_sent_that_a_remote_topic_has_already():
    """A default of its own cluster counts as having none."""
    wanted = {"retention.ms": "5", "segment.bytes": None, "max.message.bytes": "700"}
    remote = {"retention.ms": OWN, "segment.bytes": DEFAULT, "max.message.bytes": BROKERS}
    assert settings_differing(wanted, remote) == {"max.message.bytes": "700"}
    assert settings_differing({"segment.bytes": None}, {"segment.bytes": OWN}) == {
        "segment.bytes": None
    }
    assert settings_differing({"segment.bytes": None}, {}) == {}
