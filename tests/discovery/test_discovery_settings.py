"""Intervals: on by default, off by zero, refused when they make no sense."""

from __future__ import annotations

import pytest

from discovery.cluster_double import T1, ClusterDouble, Log, Source
from headrace.connect.errors import ConfigError
from headrace.discovery.settings import DiscoveryConfig, duration_ms

MS, DURATION = "partition.discovery.interval.ms", "scan.topic-partition-discovery.interval"


def test_discovery_is_on_by_default_in_effect():
    """Every five minutes: in Flink 3.1 to 3.4 the default was declared, and did nothing (FLINK-36780)."""
    cluster = ClusterDouble.of(Log())
    source = Source(cluster, interval_seconds=DiscoveryConfig.parse({}).interval_seconds())
    source.found()
    cluster.add(Log(0, 3))
    due = list[bool]()
    for source.clock.now in (299, 300):
        due.append(source.discoverer.is_due(source.enumerator))

    assert ([False, True], {T1: 0}) == (due, source.found())


@pytest.mark.parametrize(
    ("props", "seconds"),
    [
        ({}, 300.0),
        ({MS: "30000"}, 30.0),
        ({DURATION: "5 min"}, 300.0),
        ({DURATION: "250"}, 0.25),
        ({DURATION: "30 s", MS: "30000"}, 30.0),
        ({MS: "0"}, None),
        ({MS: "-1"}, None),
        ({DURATION: "0"}, None),
        ({DURATION: "0 min", MS: "-1"}, None),
    ],
)
def test_e49_an_interval_of_zero_switches_discovery_off(
    props: dict[str, str], seconds: float | None
):
    """In milliseconds also a negative one."""
    assert seconds == DiscoveryConfig.parse(props).interval_seconds()


@pytest.mark.parametrize(
    ("props", "reason"),
    [
        ({DURATION: "-5 min"}, "not negative"),
        ({DURATION: "5 fortnights"}, "is no duration"),
        ({DURATION: "9" * 400}, "longer than a duration"),
        ({MS: "abc"}, "Not a number of type LONG"),
        ({MS: "1000", DURATION: "2 s"}, "give one of the two"),
        ({"partition.discovery.max.failures": "0"}, "at least 1"),
    ],
)
def test_e50_an_interval_that_is_none_is_refused(props: dict[str, str], reason: str):
    """With the key and a sentence."""
    with pytest.raises(ConfigError, match=reason):
        DiscoveryConfig.parse(props)


@pytest.mark.parametrize(
    ("text", "milliseconds"),
    [
        ("2d", 172_800_000),
        ("3 hours", 10_800_000),
        ("7m", 420_000),
        ("1 MIN", 60_000),
        ("1500 ms", 1500),
        ("2000µs", 2),
        ("5000000 nanos", 5),
    ],
)
def test_durations_are_those_of_flink(text: str, milliseconds: int):
    """Digits, and a unit or none."""
    assert milliseconds == duration_ms(text)


def test_e51_the_interval_of_a_bounded_source_has_no_effect_and_a_warning():
    """Only where the user has set one."""
    silent, chosen = DiscoveryConfig.parse({}), DiscoveryConfig.parse({DURATION: "5 min"})

    assert (None, None) == (
        silent.interval_seconds(is_bounded=True),
        chosen.interval_seconds(is_bounded=True),
    )
    assert ((), ()) == (silent.warnings(is_bounded=True), chosen.warnings(is_bounded=False))
    assert [f"{DURATION} has no effect"] == [
        each.partition(":")[0] for each in chosen.warnings(is_bounded=True)
    ]
