"""Which tests run side by side with which."""

from __future__ import annotations

import pytest

from project.lanes import LANES, LIGHT, PARTS, SCENES, SESSION, lacking_mark, lane_of


@pytest.mark.parametrize(
    ("lane", "folder", "marks", "fixtures"),
    [
        (LIGHT, "connect", ["parametrize"], ["tmp_path"]),
        (LIGHT, "end_to_end", [], []),
        (PARTS, "kafka", ["broker"], ["bootstrap"]),
        (PARTS, "broker", ["kill"], []),
        (SCENES, "examples", ["broker"], ["bootstrap"]),
        (PARTS, "examples", ["broker", "spark"], ["bootstrap"]),
        (SESSION, "end_to_end", ["broker", "spark"], ["bootstrap"]),
        (PARTS, "spark", ["spark"], []),
        (PARTS, "end_to_end", ["broker", "spark", "kill"], ["bootstrap", "cluster"]),
        (SCENES, "end_to_end", ["broker", "kill"], ["bootstrap"]),
        (SESSION, "end_to_end", ["broker", "spark"], ["bootstrap", "spark_engine"]),
        (SESSION, "spark", ["spark"], ["spark_engine"]),
    ],
)
def test_a_test_has_one_lane(lane: str, folder: str, marks: list[str], fixtures: list[str]) -> None:
    """By where it is, its marks and its fixtures."""
    assert lane in LANES
    assert lane == lane_of(folder, marks, fixtures)


def test_light_tests_start_no_service() -> None:
    """A test that uses one and does not say so is refused."""
    assert "broker" == lacking_mark(["kill"], ["tmp_path", "bootstrap"])
    assert "spark" == lacking_mark(["broker"], ["bootstrap", "spark_engine"])
    assert lacking_mark(["broker", "spark"], ["bootstrap", "spark_engine"]) is None
