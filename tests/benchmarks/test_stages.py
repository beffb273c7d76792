"""The profile by stage measures what it names, each second once."""

from __future__ import annotations

import json
from collections.abc import Mapping

import pytest
from benchmarks.contender import BenchmarkError
from benchmarks.staged_worker import STAGES, StageClock, found
from benchmarks.stages import medians, profile_of, stage_section


@pytest.mark.parametrize("name", [name for names in STAGES.values() for name in names])
def test_what_a_stage_names_is_there_to_be_measured(name: str):
    """Otherwise its time would be counted as the rest."""
    assert callable(found(name)[2])


def test_time_inside_of_another_stage_counts_for_that_one_only():
    """As read does, inside of split."""
    now = [0.0]

    def spend(seconds: float) -> None:
        now[0] += seconds

    clock = StageClock(lambda: now[0])
    read = clock.timed("read", lambda: spend(1))

    def split() -> None:
        spend(2)
        read()
        spend(4)

    clock.timed("split", split)()
    spend(8)
    read()

    assert (2, 6) == (clock.seconds["read"], clock.seconds["split"])
    assert 8 == sum(clock.seconds.values())


def test_a_failure_inside_of_a_stage_ends_that_stage():
    """Its time counts; what comes after it is not in it."""
    now = [0.0]

    def fail() -> None:
        now[0] += 1
        raise OSError

    clock = StageClock(lambda: now[0])
    with pytest.raises(OSError):  # noqa: PT011 (raised here)
        clock.timed("read", fail)()
    now[0] += 2
    clock.timed("rest", lambda: None)()

    assert 1 == sum(clock.seconds.values())


def test_a_stage_that_no_slot_came_through_is_an_error():
    """Its seconds would be missing without a word."""
    with pytest.raises(BenchmarkError, match="checksum"):
        profile_of("lines", _written(calls={"checksum": 0}), 1000)


def test_the_section_tells_seconds_per_million():
    """Of the median round."""
    rounds = [profile_of("lines", _written(seconds=each), 1000) for each in (0.001, 0.002, 0.009)]

    rows = [line.split() for line in stage_section([medians(rounds)]).splitlines()]

    assert ["|", "checksum", "|", "2.000", "|"] in rows
    assert ["|", "records", "at", "a", "time", "|", "250", "|"] in rows


def _written(*, seconds: float = 0.0, calls: Mapping[str, int] = {}) -> str:
    return json.dumps(
        {
            "seconds": dict.fromkeys(STAGES, seconds),
            "calls": {**dict.fromkeys(STAGES, 4), **calls},
        }
    )
