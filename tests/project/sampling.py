"""What a run plays: of the kill matrices a share that its seed chooses, and those that have failed once; fewer examples."""

from __future__ import annotations

import os
import random
from collections import defaultdict
from collections.abc import Collection, Mapping

import pytest

from project.lanes import SAMPLED

SEED = "HEADRACE_SEED"
"""Names the seed of a run that plays a share; a run without it plays all it is asked for."""

_SQL = "tests/end_to_end/test_sql.py"
KEPT = frozenset(
    {f"{_SQL}::test_a_killed_process_of_a_split_slot_loses_nothing_and_doubles_nothing[2-False]"}
)
"""IDs of cases that failed under some seed, as pytest prints them: every run plays these."""


def drawn(examples: int) -> int:
    """So many *examples* of a property, or a third of them in a run that plays a share."""
    return examples // 3 if os.environ.get(SEED) else examples


def share(cases: Mapping[str, int], *, seed: str, kept: Collection[str] = KEPT) -> set[str]:
    """IDs of the cases to play.

    *cases* has, for each ID, how many of its matrix are to be played, which may be none. A matrix is a test function,
    and which of its cases are played depends on its name and the seed.
    """
    matrices = defaultdict[str, list[str]](list)
    for case in cases:
        matrices[case.partition("[")[0]].append(case)
    played = set(cases).intersection(kept)
    for name, members in matrices.items():
        chance = random.Random(f"{seed} {name}")
        played |= set(chance.sample(sorted(members), min(cases[members[0]], len(members))))
    return played


class Sampling:
    """A plugin: leaves out the cases of ``sampled`` tests that the seed does not choose, and says how many it plays."""

    def __init__(self, seed: str | None) -> None:
        self._seed = seed
        self._played = self._all = 0

    # After what `-m` and `-k` leave out: a case that is asked for by its name is played.
    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(
        self, config: pytest.Config, items: list[pytest.Item]
    ) -> None:
        """Take the others out."""
        cases = {each.nodeid: count for each in items if (count := _sampled(each)) is not None}
        played = share(cases, seed=self._seed) if self._seed else set(cases)
        left_out = set(cases) - played
        self._played, self._all = len(played), len(cases)
        config.hook.pytest_deselected(items=[each for each in items if each.nodeid in left_out])
        items[:] = [each for each in items if each.nodeid not in left_out]

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Say how much was played."""
        if self._all:
            by = f"{SEED}={self._seed}" if self._seed else f"no {SEED}"
            terminalreporter.write_line(
                f"kill matrices: {self._played} of {self._all} cases ({by})"
            )


def _sampled(item: pytest.Item) -> int | None:
    marker = item.get_closest_marker(SAMPLED)
    return int(marker.args[0]) if marker else None
