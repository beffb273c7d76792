"""The report's section about plans. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from benchmarks.plans import CASES, PlanMeasured
from benchmarks.report import MIB, markdown_table

MOST_SECONDS, MOST_MIB = 20.0, 300.0
GOAL, GOAL_FILES = "plan-s3-known", 1_000_000


def plan_section(plans: Mapping[str, PlanMeasured]) -> str:
    """A section for what is in *plans*, by the cases' keys; empty without any."""
    rows = [
        (
            case.title,
            f"{found.files:,}",
            f"{found.splits:,}",
            f"{found.seconds:.1f}",
            f"{found.cpu_seconds:.1f}",
            f"{found.peak_bytes / MIB:,.0f}",
            f"{found.index_bytes / MIB:,.0f}",
        )
        for case in CASES
        if (found := plans.get(case.key)) is not None
    ]
    if not rows:
        return ""
    head = ("", "files", "planned", "seconds", "CPU s", "plan, MiB", "stored entries, MiB")
    return f"\n\n## Plans\n\n{markdown_table(head, rows)}{_judged(plans.get(GOAL))}"


def _judged(found: PlanMeasured | None) -> str:
    if found is None or found.files < GOAL_FILES:
        return ""
    used = found.peak_bytes + found.index_bytes
    fits = found.seconds <= MOST_SECONDS and used <= MOST_MIB * MIB
    verdict = "reached" if fits else "missed"
    return (
        f"\n\nWanted of a million objects with a million stored entries: {MOST_SECONDS:.0f} s and "
        f"{MOST_MIB:.0f} MiB for both; {verdict}."
    )
