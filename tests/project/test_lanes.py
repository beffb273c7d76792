"""Which tests run side by side with which."""

from __future__ import annotations

from pathlib import Path

import pytest

from project.lanes import (
    CLUSTERS,
    LANES,
    LIGHT,
    PARTS,
    SCENES,
    SESSION,
    is_light,
    lacking_mark,
    lane_and_part,
    lane_of,
    of_part,
)


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
        (PARTS, "end_to_end", ["broker", "spark", "kill"], ["bootstrap", "connect_server"]),
        (SESSION, "end_to_end", ["broker", "spark", "kill"], ["bootstrap", "cluster"]),
        (SCENES, "end_to_end", ["broker", "kill"], ["bootstrap"]),
        (CLUSTERS, "end_to_end", ["broker", "kill"], ["mortal_broker", "broker"]),
        (CLUSTERS, "end_to_end", ["broker"], ["bootstrap", "refusing_broker"]),
        (CLUSTERS, "end_to_end", ["broker", "spark", "kill"], ["mortal_source", "mortal_target"]),
        (PARTS, "kafka", ["broker"], ["refusing_broker"]),
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


@pytest.mark.parametrize(
    ("text", "light"),
    [
        ("@pytest.mark.slow\ndef test_broker(): ...", True),
        ("@pytest.mark.broker\ndef test_it(): ...", False),
        ("pytestmark = [mark.kill]", False),
    ],
)
def test_what_names_no_service_is_light(tmp_path: Path, text: str, *, light: bool) -> None:
    """A lane on real parts does not import it."""
    module = tmp_path / "test_it.py"
    module.write_text(text)

    assert light is is_light(module)


@pytest.mark.parametrize(
    ("text", "named"), [("light", (LIGHT, 1, 1)), ("scenes:2/4", (SCENES, 2, 4))]
)
def test_a_lane_or_a_part_of_it_is_named(text: str, named: tuple[str, int, int]) -> None:
    """As `./check --all` names them."""
    assert named == lane_and_part(text)


@pytest.mark.parametrize("text", ["", "scene", "scenes:", "scenes:0/4", "scenes:5/4", "scenes:a/4"])
def test_another_name_is_refused(text: str) -> None:
    """Without a word, other tests would run, or none."""
    with pytest.raises(pytest.UsageError, match=rf"not {text}\.$"):
        lane_and_part(text)


@pytest.mark.parametrize("parts", [1, 2, 3, 7])
def test_each_test_is_in_one_part(parts: int) -> None:
    """Cases are dealt out, and what is no case is in the first."""
    cases = [f"{matrix}[{each}]" for matrix in "ab" for each in range(6)]
    tests = {"c": False, **dict.fromkeys(cases, True), "d": False}

    first, *others = (of_part(tests, part, parts) for part in range(1, parts + 1))

    assert sorted(tests) == sorted(name for each in (first, *others) for name in each)
    assert {"c", "d"} <= first
    counts = [len(first) - 2, *map(len, others)]
    assert max(counts) - min(counts) <= 1
