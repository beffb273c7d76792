"""The settings of the broker, and of its Java."""

from __future__ import annotations

from pathlib import Path

from headrace.broker.broker import jvm_options
from headrace.broker.folder import as_text, server_properties


def test_overrides_win():
    """What the caller sets wins over ours."""
    reported = server_properties(
        port=1, controller_port=2, log_dirs=Path("/x"), overrides={"num.partitions": "7"}
    )

    assert "7" == reported["num.partitions"]


def test_loopback_only():
    """Nobody on another machine reaches it."""
    reported = server_properties(port=1, controller_port=2, log_dirs=Path("/x"), overrides={})

    assert "PLAINTEXT://127.0.0.1:1,CONTROLLER://127.0.0.1:2" == reported["listeners"]


def test_old_timestamps_are_kept():
    """Records of last year stay: Kafka's own default would delete them within minutes."""
    found = server_properties(port=1, controller_port=2, log_dirs=Path("/logs"), overrides={})

    assert "-1" == found["log.retention.ms"]


def test_escapes():
    """Blanks, backslashes and letters beyond Latin-1 survive Java's way of reading properties."""
    assert "log.dirs=/a\\ b\\\\c\\u00e9\\ud83d\\ude00\n" == as_text({"log.dirs": "/a b\\cé😀"})


def test_options_of_java_can_be_replaced():
    """By the variables of Kafka's own start script, one by one; an empty one is as good as none there, too."""
    default = jvm_options({"KAFKA_HEAP_OPTS": ""})
    quick = jvm_options({"KAFKA_JVM_PERFORMANCE_OPTS": "-XX:+UseSerialGC -Da='b c'"})

    assert {"-Xmx1g", "-XX:+UseG1GC"} < set(default)
    assert ["-Xms256m", "-Xmx1g", "-XX:+UseSerialGC", "-Da=b c"] == quick
