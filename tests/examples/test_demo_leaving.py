"""How the demonstration ends when it is asked to, and what it listens to meanwhile."""

from __future__ import annotations

import importlib
import signal

import pytest
from leaving import ENDINGS, Ending
from logs import FETCHING, STARTING


class Collected:
    """Gets its signal where Python swallows what is raised."""

    def __init__(self, ending: Ending) -> None:
        self._ending = ending

    def __del__(self) -> None:
        self._ending(signal.SIGTERM, None)


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_signal_that_python_swallows_is_remembered():
    """Whoever asks later leaves then."""
    kept = {each: signal.getsignal(each) for each in ENDINGS}
    ending = Ending()
    ending.leave_if_received()
    try:
        Collected(ending)
        with pytest.raises(SystemExit, match=str(128 + signal.SIGTERM)):
            ending.leave_if_received()
    finally:
        for number, handler in kept.items():
            signal.signal(number, handler)


@pytest.mark.parametrize("name", [FETCHING, STARTING])
def test_what_the_screen_shows_of_the_logs_is_logged(name: str):
    """Loggers have the names of their modules."""
    assert name == importlib.import_module(name).__name__
