"""A run plays a share of the kill matrices, which its seed chooses."""

from __future__ import annotations

from pathlib import Path

import pytest

from project.sampling import KEPT, SEED, share

TESTS = Path(__file__).parents[1]
CASES = {f"a.py::one[{number}]": 2 for number in range(9)} | {
    f"b.py::other[{number}]": 1 for number in range(4)
}


def test_a_seed_chooses_so_many_of_each_matrix() -> None:
    """The same ones each time, whatever else is collected; another seed chooses others."""
    played = share(CASES, seed="1", kept=())

    assert [2, 1] == [sum(each.startswith(file) for each in played) for file in ("a.py", "b.py")]
    alone = {name: count for name, count in reversed(CASES.items()) if name.startswith("a.py")}
    assert {each for each in played if each.startswith("a.py")} == share(alone, seed="1", kept=())
    assert 1 < len({frozenset(share(CASES, seed=str(seed), kept=())) for seed in range(9)})


def test_every_case_comes_under_some_seed() -> None:
    """So that nothing is left out for ever."""
    assert set(CASES) == {case for seed in range(200) for case in share(CASES, seed=str(seed))}


def test_what_has_failed_once_is_always_played() -> None:
    """Beside what the seed chooses; what is not there is no harm."""
    kept = ["a.py::one[3]", "a.py::one[5]", "gone.py::x[1]"]
    for seed in map(str, range(20)):
        assert {*share(CASES, seed=seed, kept=()), *kept[:2]} == share(CASES, seed=seed, kept=kept)


def test_kept_cases_are_there() -> None:
    """One that was renamed would be left out silently."""
    for case in KEPT:
        file, name = case.split("[")[0].split("::")
        assert f"def {name}(" in (TESTS.parent / file).read_text(), case


CONFTEST = """
import os
from project.sampling import SEED, Sampling

def pytest_configure(config):
    config.addinivalue_line("markers", "sampled(count): x")
    config.pluginmanager.register(Sampling(os.environ.get(SEED)))
"""
MATRIX = """
import pytest

@pytest.mark.sampled(2)
@pytest.mark.parametrize("number", range(9))
def test_it(number):
    pass

@pytest.mark.sampled(0)
def test_only_of_all():
    pass
"""


@pytest.mark.parametrize(
    ("seed", "asked", "told"),
    [
        ("5", [], ["2 passed, 8 deselected", "kill matrices: 2 of 10 cases (HEADRACE_SEED=5)"]),
        ("", [], ["10 passed", "kill matrices: 10 of 10 cases (no HEADRACE_SEED)"]),
        ("5", ["-k", "7 or 8"], ["2 passed, 8 deselected", "kill matrices: 2 of 2 cases"]),
    ],
)
def test_pytest_tells_what_it_plays(  # noqa: PLR0917
    pytester: pytest.Pytester,
    monkeypatch: pytest.MonkeyPatch,
    seed: str,
    asked: list[str],
    told: list[str],
) -> None:
    """A case that is asked for by name is played, whatever the seed is."""
    monkeypatch.setenv(SEED, seed)
    monkeypatch.syspath_prepend(str(TESTS))
    pytester.makeconftest(CONFTEST)
    pytester.makepyfile(MATRIX)

    said = pytester.runpytest_inprocess("-p", "no:randomly", *asked).stdout.str()

    assert [True, True] == [each in said for each in told], said
