"""`./check` runs everything side by side, and its last lines say how it went."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections import Counter
from fractions import Fraction
from pathlib import Path

import pytest

from project.lanes import LANES, lane_and_part

BIN = Path(__file__).parents[2] / "bin"

# A program that prints what it is given for its lane stands for pytest; one that prints of failures has failed.
PROGRAM = '''
import sys

sys.path.insert(0, sys.argv[1])
light = sys.argv.pop(2)
sys.argv.pop(1)
import check

echo = """
import ast, os, sys
said = ast.literal_eval(sys.argv[1]).get(sys.argv[-1], sys.argv[-1])
print(said, "seed", os.environ.get("HEADRACE_SEED"), *(each for each in sys.argv if "-seed=" in each))
sys.exit("failed" in said)
"""
check.STATIC = {"lint": [sys.executable, "-c", "print('clean')"]}
said = {"light": light, "real": "kill matrices: 2 of 9 cases (x)\\n===== 5 passed, 1 skipped in 2.51s ====="}
said["other"] = "===== 4 passed in 1.00s ====="
check.PYTEST, check.AT_ONCE = [sys.executable, "-c", echo, repr(said)], 1
check.REAL, check.REAL_WITH_ALL = ["real", "other"], ["real:1/2", "real:2/2", "other"]
check.main()
'''
FINE = "7 passed, 30 deselected in 61.00s (0:01:01)"


def checked(light: str, *arguments: str, **env: str) -> subprocess.CompletedProcess[str]:
    """What `./check` does when the light tests print *light*; a seed and a broker are there already."""
    given = {"HEADRACE_TEST_BOOTSTRAP": "127.0.0.1:1", "HEADRACE_SEED": "77", **env}
    return subprocess.run(
        [sys.executable, "-c", PROGRAM, str(BIN), light, *arguments],
        env={**os.environ, **given},
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_last_lines_sum_up() -> None:
    """How long each tier took, what was played of the matrices and how to play it again, all tests together."""
    done = checked(FINE)

    took, matrices, counts, last = done.stdout.splitlines()[-4:]
    assert 0 == done.returncode, done.stderr
    assert took.startswith("light ")
    assert ", real " in took
    assert (
        "kill matrices: 2 of 9 cases; the same again: HEADRACE_SEED=77 ./check; all of them: ./check --all"
        == matrices
    )
    assert ("16 passed, 0 failed, 1 skipped", "All checks passed.") == (counts, last)


@pytest.mark.parametrize("light", ["1 failed, 6 passed, 2 errors in 3.00s", "failed, and no line"])
def test_what_has_failed_is_shown_and_named(light: str) -> None:
    """With all that it said; a fixture that failed counts as a failed test."""
    done = checked(light)

    assert 1 == done.returncode
    assert light in done.stdout
    assert "FAILED: light\n" == done.stderr
    count = "15 passed, 3 failed" if "passed" in light else "9 passed, 0 failed"
    assert f"{count}, 1 skipped" == done.stdout.splitlines()[-1]


def test_all_is_played_without_a_share() -> None:
    """The seed is for the order and the draws only; how long that takes is said before it begins."""
    done = checked("x failed", "--all")

    assert "an hour and a half" in done.stdout.splitlines()[0]
    assert ["real:1/2", "real:2/2", "other"] == re.findall(
        r"^(real.*|other): ok", done.stdout, re.MULTILINE
    )
    assert "seed None --randomly-seed=77 --hypothesis-seed=77" in done.stdout
    assert "; the same again: HEADRACE_SEED=77 ./check --all" in done.stdout


@pytest.mark.parametrize("real", ["REAL", "REAL_WITH_ALL"])
def test_all_lanes_are_run_with_all_their_parts(real: str) -> None:
    """The tests of one that is not named would never run."""
    code = f"import sys; sys.path.insert(0, {str(BIN)!r}); import check; print(*check.LIGHT.split(), *check.{real})"
    named = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    found = Counter[str]()
    for lane, part, parts in map(lane_and_part, named.stdout.split()):
        found[lane] += Fraction(1, parts)
        assert 1 == named.stdout.split().count(f"{lane}:{part}/{parts}" if parts > 1 else lane)

    assert dict.fromkeys(LANES, 1) == found


def test_a_run_can_be_played_again() -> None:
    """The order of its tests, what is random in them, and what hypothesis draws depend on its seed."""
    done = checked("x failed")

    assert "seed 77 --randomly-seed=77 --hypothesis-seed=77" in done.stdout


def test_a_seed_is_a_number() -> None:
    """As pytest's plugins take no other."""
    done = checked(FINE, HEADRACE_SEED="today")

    assert (1, "HEADRACE_SEED=today is not a number.\n") == (done.returncode, done.stderr)


def test_arguments_go_to_one_pytest() -> None:
    """After the static checks; nothing is left out by a seed that no one gave."""
    done = checked(FINE, "-k", "record", HEADRACE_SEED="")

    lint, seeds, said, last = done.stdout.splitlines()
    assert 0 == done.returncode, done.stderr
    assert lint.startswith("lint: ok (")
    options = seeds.removeprefix("tests, with ").removesuffix(":")
    assert (f"record seed None {options}", "All checks passed.") == (said, last)
