"""How often partitions are discovered, how many failures are tolerated, and what is done about lost ones."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final, Literal

from headrace.connect.config import Config, Problem
from headrace.connect.setting import SettingType, setting
from headrace.discovery.enumerator import DataLossPolicy, DiscoveryPolicies, RecreatedPolicy
from headrace.discovery.subscribers import Growth

_INTERVAL: Final = "partition.discovery.interval.ms"
_DURATION: Final = "scan.topic-partition-discovery.interval"
# Kafka's metadata.max.age.ms, as FLIP-288 has it.
_DEFAULT_MS: Final = 300_000
_LONGEST_MS: Final = 2**63 - 1
_SHOWN: Final = 30
_UNITS_MS: Final = {
    **dict.fromkeys(("d", "day", "days"), 86_400_000.0),
    **dict.fromkeys(("h", "hour", "hours"), 3_600_000.0),
    **dict.fromkeys(("min", "m", "minute", "minutes"), 60_000.0),
    **dict.fromkeys(("s", "sec", "secs", "second", "seconds"), 1_000.0),
    **dict.fromkeys(("", "ms", "milli", "millis", "millisecond", "milliseconds"), 1.0),
    **dict.fromkeys(("µs", "micro", "micros", "microsecond", "microseconds"), 0.001),
    **dict.fromkeys(("ns", "nano", "nanos", "nanosecond", "nanoseconds"), 0.000_001),
}


def duration_ms(text: str) -> float:
    """The milliseconds of a duration in Flink's form: ``5 min``, ``30s``, ``250`` (milliseconds).

    Raises ``ValueError`` with a sentence.
    """
    found = re.fullmatch(r"\s*([0-9]+)\s*([a-zµ]*)\s*", text.lower())
    if not found or found[2] not in _UNITS_MS:
        raise ValueError(
            f"{text!r} is no duration: give a number, not negative, and a unit (d, h, min, s, ms, µs, ns; none is ms)"
        )
    milliseconds = float(found[1]) * _UNITS_MS[found[2]]
    if milliseconds > _LONGEST_MS:
        raise ValueError(f"{text[:_SHOWN]!r} is longer than a duration of Java's may be")
    return milliseconds


def _duration_problem(text: str) -> str | None:
    try:
        duration_ms(text)
    except ValueError as error:
        return f"{error}; 0 switches discovery off"
    return None


class DiscoveryConfig(Config):
    """The settings of partition discovery, under the keys of Flink's Kafka source where it has them."""

    interval_ms: int = setting(
        _INTERVAL,
        default=_DEFAULT_MS,
        kind=SettingType.LONG,
        doc="How often new partitions and topics are looked for, in milliseconds. 0 or less: once, at the start.",
    )
    interval: str | None = setting(
        _DURATION,
        default=None,
        valid=_duration_problem,
        doc=f"The same as `{_INTERVAL}`, as a duration: `5 min`, `30 s`. 0: once, at the start.",
    )
    max_failures: int = setting(
        "partition.discovery.max.failures",
        default=12,
        at_least=1,
        doc="How many discoveries in a row may fail before the source does. Known partitions are read meanwhile. With the "
        "default interval 12 is an hour: longer than brokers take to restart one by one, and far shorter than topics keep "
        "the records of a partition that has not been discovered. The first discovery may not fail at all.",
    )
    on_removed: Literal["fail", "continue"] | None = setting(
        "partition.discovery.on.removed",
        default=None,
        doc="What to do when a topic or partition that was read is gone: `fail`, or `continue` with the others and report it. "
        "By default `continue` for a pattern, whose topics come and go, and else `fail`.",
    )
    on_recreated: Literal["fail", "continue", "restart"] = setting(
        "partition.discovery.on.recreated",
        default="fail",
        doc="What to do when a topic was deleted and created again (its topic id is another): `fail`, `continue` at the "
        "position in the old one and report it, or `restart` at the beginning of the new one and report it.",
    )
    on_truncated: Literal["fail", "continue"] = setting(
        "partition.discovery.on.truncated",
        default="fail",
        doc="What to do when the first records of a new partition were deleted before it was discovered: `fail`, or "
        "`continue` with what is left and report it.",
    )

    def check(self) -> Iterator[Problem]:
        """Two intervals have to be the same one."""
        if _INTERVAL not in self.originals or self.interval is None:
            return
        if duration_ms(self.interval) != max(self.interval_ms, 0):
            yield _DURATION, f"{_INTERVAL} says something else; give one of the two."

    def interval_seconds(self, *, is_bounded: bool = False) -> float | None:
        """Seconds between discoveries; ``None``: one at the start and no other, as always for a bounded source."""
        found = self.interval_ms if self.interval is None else duration_ms(self.interval)
        return None if is_bounded or found <= 0 else found / 1000.0

    def warnings(self, *, is_bounded: bool) -> tuple[str, ...]:
        """Sentences about intervals that have no effect."""
        given = sorted({_INTERVAL, _DURATION} & self.originals.keys())
        if not is_bounded or not given or self.interval_seconds() is None:
            return ()
        return (
            f"{' and '.join(given)} has no effect: a bounded source reads the partitions of its first discovery only.",
        )

    def policies(self, growth: Growth) -> DiscoveryPolicies:
        """What to do about losses, for a subscription of that *growth*."""
        default = "continue" if growth is Growth.TOPICS else "fail"
        return DiscoveryPolicies(
            removed=DataLossPolicy(self.on_removed or default),
            recreated=RecreatedPolicy(self.on_recreated),
            truncated=DataLossPolicy(self.on_truncated),
        )
