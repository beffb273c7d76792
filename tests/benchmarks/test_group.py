"""What is measured of a group of workers: computed figures, and what workers have logged."""

from __future__ import annotations

import json

import pytest
from benchmarks.group_scale import SCALE_CASES, ScaleCase
from benchmarks.group_scene import STOPPED, first_after, longest_gap, times_of


def test_times_are_those_of_a_message_and_a_connector():
    """Other lines are no JSON, or say something else."""
    said = [
        {"message": STOPPED, "connector": name, "timestamp": f"1970-01-01T00:00:0{second}.5Z"}
        for second, name in enumerate("aba")
    ]
    told = "\n".join(["headrace: stopping", *map(json.dumps, said), '{"message": "else"}'])

    assert [0.5, 2.5] == times_of(told, STOPPED, "a")
    assert [0.5, 1.5, 2.5] == times_of(told, STOPPED)


def test_a_gap_counts_that_ends_after_a_moment():
    """Also the one that was open then; those before do not."""
    commits = [1_000, 4_000, 4_200, 5_700, 5_900]

    assert 1.5 == pytest.approx(longest_gap(commits, since=5.0))
    assert 3.0 == longest_gap(commits, since=3.0)
    assert 4.2 == first_after(commits, 4.0)


@pytest.mark.slow
@pytest.mark.parametrize("case", [each for each in SCALE_CASES if each.connectors == 1_000])
def test_computed_figures_come_with_their_goals(case: ScaleCase):
    """Each case has some that are judged; none is made up without the work having been divided or read."""
    figures = case.run(case.connectors)

    assert all(each.value > 0 for each in figures)
    assert any(each.most is not None for each in figures)
    assert all(
        each.value < each.most for each in figures if each.unit in {"MiB", "KiB"} and each.most
    )
