"""How plans are measured and reported."""

from __future__ import annotations

from pathlib import Path

import pytest
from benchmarks.plan_report import plan_section
from benchmarks.plans import CASES, PlanMeasured, plan_once

MIB = 1024 * 1024


def took(
    seconds: float = 10.0, *, mib: int = 100, index_mib: int = 200, files: int = 1_000_000
) -> PlanMeasured:
    """A plan of one case."""
    return PlanMeasured(
        files=files,
        index_bytes=index_mib * MIB,
        seconds=seconds,
        cpu_seconds=seconds,
        peak_bytes=mib * MIB,
        splits=7,
        offsets=0,
    )


@pytest.mark.parametrize(
    ("key", "splits"),
    [
        ("plan-s3-known", 1000),
        ("plan-s3-new", 2500),
        ("plan-local-known", 0),
        ("plan-local-new", 2500),
    ],
)
def test_each_case_plans_what_is_not_known(tmp_path: Path, key: str, splits: int):
    """What the stored entries call done is not planned, so they are what the connector would have written."""
    case = next(each for each in CASES if each.key == key)
    found = plan_once(case, 2500, tmp_path)

    assert (splits, 0) == (found.splits, found.offsets)
    assert found.seconds > 0


@pytest.mark.parametrize(
    ("found", "verdict"),
    [
        (took(), "reached."),
        (took(21), "missed."),
        (took(mib=101), "missed."),
        (took(index_mib=201), "missed."),
    ],
)
def test_the_goal_is_time_and_memory(found: PlanMeasured, verdict: str):
    """Both must be within their bounds."""
    assert plan_section({"plan-s3-known": found}).endswith(verdict)


def test_fewer_files_are_not_judged():
    """The goal speaks of a million; and without figures there is no section."""
    assert "Wanted" not in plan_section({"plan-s3-known": took(files=1000)})
    assert not plan_section({})
