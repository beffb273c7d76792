"""Which settings remote topics get."""

from __future__ import annotations

from headrace.mirror.filters import property_filter
from headrace.mirror.topic_config_sync import (
    Origin,
    TopicSetting,
    accepting,
    settings_at_creation,
    settings_changed,
    settings_differing,
)

NO_LIMIT = "9223372036854775807"
OWN = TopicSetting("retention.ms", "5", Origin.DYNAMIC_TOPIC_CONFIG)
DEFAULT = TopicSetting("segment.bytes", "9", Origin.DEFAULT_CONFIG)
BROKERS = TopicSetting("max.message.bytes", "700", Origin.STATIC_BROKER_CONFIG)


def test_a_topics_own_settings_are_copied_and_defaults_are_reset():
    """What its brokers have in their files is theirs."""
    chosen = property_filter({})
    settings = [OWN, DEFAULT, BROKERS]
    assert settings_at_creation(settings, chosen) == {"retention.ms": "5"}
    assert settings_changed(settings, chosen) == {"retention.ms": "5", "segment.bytes": None}


def test_defaults_of_the_source_are_copied_if_they_are_to_be():
    """So that both topics are the same although their clusters differ."""
    chosen = property_filter({"use.defaults.from": "source"})
    expected = {"retention.ms": "5", "segment.bytes": "9"}
    assert settings_at_creation([OWN, DEFAULT], chosen) == expected
    assert settings_changed([OWN, DEFAULT], chosen) == expected


def test_remote_topics_take_what_their_source_topics_took():
    """Records of any time, and as large as the source's brokers allow; settings that the target does not know are left."""
    known = {"max.message.bytes", "message.timestamp.before.max.ms"}
    assert accepting([OWN, BROKERS], known) == {
        "max.message.bytes": "700",
        "message.timestamp.before.max.ms": NO_LIMIT,
    }
    assert accepting([BROKERS._replace(origin=Origin.DEFAULT_CONFIG)], known) == {
        "message.timestamp.before.max.ms": NO_LIMIT
    }


def test_nothing_is_sent_that_a_remote_topic_has_already():
    """A default of its own cluster counts as having none."""
    wanted = {"retention.ms": "5", "segment.bytes": None, "max.message.bytes": "700"}
    assert settings_differing(wanted, [OWN, DEFAULT, BROKERS]) == {"max.message.bytes": "700"}
    own = DEFAULT._replace(origin=Origin.DYNAMIC_TOPIC_CONFIG)
    assert settings_differing({"segment.bytes": None}, [own]) == {"segment.bytes": None}
    assert settings_differing({"segment.bytes": None}, []) == {}
