"""What the demonstration says: its table, its progress, and where it writes them."""

from __future__ import annotations

import io
from collections import Counter

import pytest
from checking import compared
from hypothesis import given
from hypothesis import strategies as st
from landing import Landed
from progress import Progress
from screen import Screen
from telling import Teller

from headrace.observe import events

records = st.builds(Counter, st.lists(st.sampled_from("abcd")))


@given(wanted=records, found=records)
def test_difference_is_accounted_for(wanted: Counter[str], found: Counter[str]):
    """Lost, twice and foreign records explain every difference between file and topic."""
    comparison = compared({"file": wanted}, found)
    line = comparison.total()

    assert line.read - line.lost + line.twice == line.found
    assert line.found + comparison.foreign == found.total()
    assert comparison.is_right() == (wanted == found)


def test_record_that_came_twice():
    """One record too few and another too many is wrong, although the sum is right."""
    comparison = compared({"file": Counter("ab")}, Counter("bb"))

    assert (1, 1) == (comparison.total().lost, comparison.total().twice)
    assert not comparison.is_right()


def test_progress():
    """A line has the share, the records, the bytes, the rate and what is left."""
    progress = Progress(2_000)
    progress.line(Landed(), 10.0)

    line = progress.line(Landed(records=1_000, bytes=2_500_000), 12.0)

    assert "50%" in line
    assert line.endswith("1,000 records  2.5 MB  500/s  1,000 left")


@pytest.mark.parametrize(("slots", "said"), [(1, "1 task resumes"), (2, "2 tasks resume")])
def test_what_follows_a_kill(slots: int, said: str):
    """In good English, and in eighty columns."""
    stream = io.StringIO()
    teller = Teller(Screen(stream, live=False))

    teller(events.Replanned(connector="flights", reason="lost"))
    teller(events.MicroBatchStarted(connector="flights", slots=slots))

    assert f"{said} after the last commit." in stream.getvalue()
    assert all(len(line) <= 80 for line in stream.getvalue().splitlines())


def test_the_longest_progress_fits_into_eighty_columns():
    """With all the digits of the demonstration's numbers."""
    progress = Progress(64_969)
    progress.line(Landed(), 0.0)

    assert 80 > len(progress.line(Landed(records=34_969, bytes=13_100_000), 3.0))


def test_screen_that_can_be_written_again():
    """A line that stays goes above the progress, which is shown again."""
    stream = io.StringIO()
    screen = Screen(stream, live=True)

    screen.progress("half")
    screen.say("news")
    screen.end_progress("all")

    assert "\r\x1b[Khalf\r\x1b[Knews\nhalf\r\x1b[Kall\n" == stream.getvalue()


def test_a_long_line_is_wrapped():
    """Below its beginning; a path is not cut."""
    stream = io.StringIO()

    Screen(stream, live=False).say("  flights waits: " + "a reason " * 10 + "/" + "x" * 80)

    lines = stream.getvalue().splitlines()
    assert (
        "  flights waits: a reason a reason a reason a reason a reason a reason a reason"
        == lines[0]
    )
    assert ["    a reason a reason a reason", f"    /{'x' * 80}"] == lines[1:]


def test_screen_that_cannot():
    """Without a terminal, progress is a line every two seconds and one at the end."""
    stream, now = io.StringIO(), iter([0.0, 0.0, 0.0, 1.9, 2.0, 2.0])
    screen = Screen(stream, live=False, clock=lambda: next(now))

    for line in ("first", "too soon", "third"):
        screen.progress(line)
    screen.end_progress("last")

    assert "first\nthird\nlast\n" == stream.getvalue()
