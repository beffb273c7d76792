"""The thread of a group's worker is woken by other threads and by sockets, and by nothing else."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import closing

import pytest

from headrace.herder.wakeup import Wakeup

LONG = 30.0


@pytest.fixture
def wakeup() -> Iterator[Wakeup]:
    """One that no one has woken."""
    with closing(Wakeup()) as made:
        yield made


def waited(wakeup: Wakeup, seconds: float, *sources: int) -> float:
    """How long it waits, in seconds."""
    began = time.monotonic()
    wakeup.wait(seconds, sources)
    return time.monotonic() - began


def test_it_waits_as_long_as_it_is_given(wakeup: Wakeup):
    """Also when the time is over by then."""
    assert waited(wakeup, 0.05) >= 0.05
    wakeup.wait(-1.0)


@pytest.mark.parametrize("has_waited", [False, True])
def test_what_was_said_before_counts_once(wakeup: Wakeup, *, has_waited: bool):
    """However often it was said."""
    if has_waited:
        wakeup.wait(0.0)
    for _ in range(3):
        wakeup.set()

    assert waited(wakeup, LONG) < LONG / 2
    assert waited(wakeup, 0.05) >= 0.05


def test_it_is_woken_by_another_thread(wakeup: Wakeup):
    """While it waits."""
    thread = threading.Timer(0.05, wakeup.set)
    thread.start()

    assert waited(wakeup, LONG) < LONG / 2
    thread.join()


def test_it_is_woken_by_what_can_be_read(wakeup: Wakeup):
    """Again and again, until someone has read it."""
    ours, theirs = socket.socketpair()
    with ours, theirs:
        assert waited(wakeup, 0.05, ours.fileno()) >= 0.05
        theirs.send(b"x")

        assert waited(wakeup, LONG, ours.fileno()) < LONG / 2
        assert waited(wakeup, LONG, ours.fileno()) < LONG / 2
        ours.recv(1)
        assert waited(wakeup, 0.05, ours.fileno()) >= 0.05


def test_a_connection_that_was_closed_does_not_keep_it(wakeup: Wakeup):
    """Its number may still be asked for."""
    wakeup.wait(0.0)
    ours, theirs = socket.socketpair()
    with theirs:
        number = ours.fileno()
        ours.close()

        assert waited(wakeup, LONG, number) < LONG / 2


def test_after_its_end_it_is_woken_in_vain(wakeup: Wakeup):
    """As by a network's thread that is about to end."""
    wakeup.wait(0.0)
    wakeup.close()

    wakeup.set()
