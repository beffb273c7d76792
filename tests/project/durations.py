"""How long a test may take: more than ten seconds only when it is marked ``slow``, and none more than two minutes.

The two minutes are those of a test that has a processor to itself.
"""

from __future__ import annotations

import os
from collections.abc import Generator

import pytest

SLOW_SECONDS = 10.0
OPTION = "--refuse-above"


class Durations:
    """A plugin: lists tests that take long and are not marked; fails those above *limit* seconds, if there is one.

    What else the machine does is not the test's fault: the limit is multiplied by the load of each processor.
    """

    def __init__(self, limit: float | None, *, slow_seconds: float = SLOW_SECONDS) -> None:
        self._limit, self._slow_seconds = limit, slow_seconds
        self._unmarked: dict[str, float] = {}

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item, call: pytest.CallInfo[None]
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """Look at how long the test itself took; what it waited for, such as Spark's start, is its fixtures'."""
        report = yield
        if call.when != "call" or not report.passed:
            return report
        load = crowding()
        if self._limit is not None and call.duration > self._limit * load:
            report.outcome = "failed"
            report.longrepr = refusal(call.duration, self._limit, load)
        elif call.duration > self._slow_seconds and item.get_closest_marker("slow") is None:
            self._unmarked[item.nodeid] = call.duration
        return report

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """List the unmarked ones, the longest first."""
        if not self._unmarked:
            return
        terminalreporter.section(f"more than {self._slow_seconds:g} s, and not marked slow")
        for name, seconds in sorted(self._unmarked.items(), key=lambda each: -each[1]):
            terminalreporter.write_line(f"{seconds:6.1f} s {name}")


def crowding() -> float:
    """How many programs want each processor, those of the other lanes among them; at least 1."""
    return max(1.0, os.getloadavg()[0] / (os.cpu_count() or 1))


def refusal(seconds: float, limit: float, load: float) -> str:
    """The failure of a test that takes too long."""
    return (
        f"It passed, but took {seconds:.0f} s. No test may take more than {limit:g} s ({limit * load:.0f} s while "
        f"{load:.1f} programs want each processor, as now): split it, shorten what it waits for (leases, intervals, "
        "polls are settings), or let it play fewer rounds."
    )
