"""Processes, their CPU time and their memory."""

from __future__ import annotations

from benchmarks.process_tree import descendants
from benchmarks.usage import NeverBack, Reading, Usage


def reading(at: float, *, cpu: float = 0.0, rss: int = 0, slot: int = 0) -> Reading:
    """One moment."""
    return Reading(at=at, cpu_seconds=cpu, rss_bytes=rss, slot_rss_bytes=slot)


def test_descendants_of_roots():
    """Children of children belong to the root; others' children do not."""
    assert {1, 2, 3, 9} == descendants([1, 9], {2: 1, 3: 2, 5: 4, 4: 0})


def test_ended_processes_keep_their_share():
    """A sum that drops, because a process ended, continues from where it was."""
    cpu = NeverBack()

    assert [5.0, 5.0, 6.0] == [cpu.total(seen) for seen in (5.0, 2.0, 3.0)]


def test_cpu_between_readings_is_interpolated():
    """The stretch that counts begins and ends between readings."""
    usage = Usage([reading(10, cpu=0), reading(12, cpu=4), reading(14, cpu=5)])

    assert 2.5 == usage.cpu_seconds(11, 13)


def test_cpu_outside_of_readings():
    """Before the first reading it has the first one's figure, after the last one the last one's."""
    usage = Usage([reading(10, cpu=1), reading(12, cpu=4)])

    assert 3.0 == usage.cpu_seconds(0, 99)


def test_peaks():
    """The peaks of all and of a slot need not be at the same time."""
    usage = Usage([reading(1, rss=10, slot=7), reading(2, rss=20, slot=5)])

    assert (20, 7) == (usage.peak_rss_bytes, usage.peak_slot_rss_bytes)
