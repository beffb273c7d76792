"""The groups in which ./check runs tests side by side, each in a pytest of its own.

A lane can be divided: ``scenes:2/4`` is the second of four parts.
"""

from __future__ import annotations

import random
import re
from collections.abc import Collection, Mapping
from pathlib import Path

import pytest

OPTION = "--lane"
LIGHT, SESSION, SCENES, CLUSTERS, PARTS = "light", "session", "scenes", "clusters", "parts"
SAMPLED = "sampled"
_NAMED = re.compile(r"(\w+)(?::(\d+)/(\d+))?")
_REAL = (SESSION, SCENES, CLUSTERS, PARTS)
LANES = (LIGHT, *_REAL)
_OTHER_SESSIONS = {"cluster", "retrying", "connect_server"}
_OTHER_BROKERS = {
    "mortal_broker",
    "refusing_broker",
    "forgetful_broker",
    "mortal_source",
    "mortal_target",
}
_NEED_SERVICE = {"broker", "kill", "spark"}
# A module without any of them has only light tests, and to import all of those takes a lane many seconds.
_MARKED = re.compile(rf"\bmark\.({'|'.join(sorted(_NEED_SERVICE))})\b")
# What a test needs to say when it uses one of these, as its lane depends on it.
_MARKS = {
    **dict.fromkeys(["bootstrap", *sorted(_OTHER_BROKERS)], "broker"),
    **dict.fromkeys(["spark_engine", *_OTHER_SESSIONS], "spark"),
}


def lane_of(folder: str, marks: Collection[str], fixtures: Collection[str]) -> str:
    """The lane of a test in a *folder* of the tests.

    Tests that share a Spark session are one lane, as a process has one. With them go connectors on a cluster, and programs
    on a broker that start Spark themselves. Tests of whole connectors on a broker are another lane, with the commands that
    pages show. The third has those with brokers of their own, such as the second cluster of a mirror, and the fourth
    those of single parts, what needs a Spark Connect server, and pages about Spark.
    """
    used = set(fixtures)
    if "spark_engine" in used:
        return SESSION
    if not _NEED_SERVICE & set(marks):
        return LIGHT
    if folder == "examples":
        return PARTS if "spark" in marks else SCENES
    if folder != "end_to_end" or "connect_server" in used:
        return PARTS
    if _OTHER_BROKERS & used:
        return CLUSTERS
    return SESSION if "spark" in marks else SCENES


def is_light(module: Path) -> bool:
    """Whether a *module* of tests names none of the marks of a service."""
    return _MARKED.search(module.read_text()) is None


def lacking_mark(marks: Collection[str], fixtures: Collection[str]) -> str | None:
    """A mark that a test with these *fixtures* needs and has not."""
    for fixture, mark in _MARKS.items():
        if fixture in fixtures and mark not in marks:
            return mark
    return None


def lane_and_part(text: str) -> tuple[str, int, int]:
    """The lane that *text* names, which part of it, from 1 on, and of how many.

    Raises UsageError when there is no such lane or part.
    """
    found = _NAMED.fullmatch(text)
    lane, part, parts = (found[1], int(found[2] or 1), int(found[3] or 1)) if found else ("", 0, 0)
    if lane not in LANES or not 1 <= part <= parts:
        raise pytest.UsageError(
            f"{OPTION} is one of {', '.join(LANES)}, or a part of one such as {SCENES}:2/4, not {text}."
        )
    return lane, part, parts


def of_part(tests: Mapping[str, bool], part: int, parts: int) -> set[str]:
    """Those of a lane's *tests* that run in this *part* of it; each is said to be a case of a kill matrix, or not.

    Cases are dealt out, and the first part has all other tests: some need what earlier ones of their module left.
    """
    cases = sorted(name for name, is_case in tests.items() if is_case)
    # Neighbours are alike, and so take as long as each other.
    random.Random(0).shuffle(cases)
    others = [name for name, is_case in tests.items() if not is_case]
    return {*cases[part - 1 :: parts], *(others if part == 1 else ())}


class Lanes:
    """A plugin: leaves out all tests but those of *lane*, if there is one; refuses a test that uses a service without a mark."""

    def __init__(self, lane: str | None) -> None:
        self._lane, self._part, self._parts = lane_and_part(lane) if lane else (None, 1, 1)

    def pytest_ignore_collect(self, collection_path: Path) -> bool | None:
        """Do not import what can have no test of this lane."""
        is_module = collection_path.name.startswith("test_") and collection_path.suffix == ".py"
        return True if is_module and self._lane in _REAL and is_light(collection_path) else None

    def pytest_itemcollected(self, item: pytest.Item) -> None:
        """Refuse a test that uses a service and does not say so."""
        if mark := lacking_mark(_marks(item), _fixtures(item)):
            raise pytest.UsageError(f"{item.nodeid} uses a service: mark it {mark}.")
        if _lane(item) != LIGHT and is_light(item.path):
            raise pytest.UsageError(
                f"{item.nodeid} has a mark from elsewhere: name it in this module."
            )

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection_modifyitems(
        self, config: pytest.Config, items: list[pytest.Item]
    ) -> None:
        """Take the others out."""
        if self._lane is None:
            return
        tests = {
            each.nodeid: each.get_closest_marker(SAMPLED) is not None
            for each in items
            if self._lane == _lane(each)
        }
        kept = of_part(tests, self._part, self._parts)
        config.hook.pytest_deselected(items=[each for each in items if each.nodeid not in kept])
        items[:] = [each for each in items if each.nodeid in kept]


def _lane(item: pytest.Item) -> str:
    folder = item.path.relative_to(item.config.rootpath / "tests").parts[0]
    return lane_of(folder, _marks(item), _fixtures(item))


def _marks(item: pytest.Item) -> Collection[str]:
    return {each.name for each in item.iter_markers()}


def _fixtures(item: pytest.Item) -> Collection[str]:
    return getattr(item, "fixturenames", ())
