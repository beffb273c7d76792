"""How mirrors are measured and reported."""

from __future__ import annotations

from dataclasses import replace

from benchmarks.mirror import (
    COST,
    HEADRACE,
    MIRROR_MAKER,
    QUICK,
    Copied,
    Delayed,
    MirrorCase,
    Seen,
    cases,
    chosen_cases,
    steady,
)
from benchmarks.mirror_makers import JavaMirrorMaker, MirrorFlow
from benchmarks.mirror_report import mirror_section

MIB = 1024 * 1024


def run(case: MirrorCase, maker: str, cpu: float, *, rss: int = 900, slot: int = 0) -> Copied:
    """A million records in ten seconds."""
    return Copied(
        case=case,
        maker=maker,
        exactly_once=True,
        records=1_000_000,
        seconds=10.0,
        cpu_seconds=cpu,
        start_seconds=9.0,
        start_cpu_seconds=12.0,
        rss_bytes=rss * MIB,
        slot_rss_bytes=slot * MIB,
    )


def cells(row: str) -> list[str]:
    """Of a row of a table."""
    return [each.strip() for each in row.strip("| ").split("|")]


def test_the_start_of_a_run_does_not_count():
    """Nor what was copied before everything was warm."""
    commits = [Seen(10.0, 100), Seen(11.0, 200), Seen(12.0, 600), Seen(13.0, 1000)]

    part = steady(commits, 1000)

    assert part == (Seen(11.0, 200), Seen(13.0, 1000))
    assert (800, 2.0) == (part.records, part.seconds)


def test_a_slow_run_is_cut_short():
    """After some time for the start, and so much for the measurement."""
    commits = [Seen(float(second), 1 + second) for second in range(100)]

    part = steady(commits, 100_000)

    assert part is not None
    assert 10.0 == part.begin.at
    assert part.end.at >= 30.0


def test_a_run_that_is_not_over_has_no_figures():
    """And a single commit is no rate."""
    assert steady([], 1000) is None
    assert steady([Seen(1.0, 100), Seen(2.0, 200), Seen(3.0, 300)], 1000) is None
    assert steady([Seen(1.0, 1000)], 1000) is None


def test_every_key_names_one_case():
    """Those of a quick run are among them."""
    keys = [case.key for case in cases(10, 10)]

    assert len(keys) == len(set(keys))
    assert set(QUICK) <= set(keys)
    assert [COST] == [case.key for case in chosen_cases(cases(10, 10), ["mirror-c*"])]


def test_what_is_wanted_depends_on_the_batches():
    """Well-batched topics gain more."""
    wanted = {case.key: case.wanted for case in cases(10, 10)}

    assert (15.0, 8.0) == (wanted["mirror-100b-lz4-full-1"], wanted["mirror-1kb-none-full-2"])
    assert {3.0} == {found for key, found in wanted.items() if "16kb" in key}


def test_both_have_the_same_flow():
    """MirrorMaker's file only has more in it."""
    flow = MirrorFlow(alias="a", source="s:1", target="t:1", topic="x", tasks=2)

    tuned = JavaMirrorMaker().properties(flow)

    assert flow.properties.items() <= tuned.items()
    assert "5000" == tuned["a.consumer.max.poll.records"]
    assert "1000000" == tuned["target.producer.batch.size"]


def test_ratios_are_compared_with_what_is_wanted():
    """CPU by the medians, memory by the highest."""
    case = cases(10, 10)[0]
    text = mirror_section(
        [
            *(run(case, HEADRACE.title, cpu, slot=150) for cpu in (0.5, 9.0, 0.4)),
            run(case, MIRROR_MAKER.title, 6.0, rss=1800),
        ]
    )

    (row,) = (line for line in text.splitlines() if line.startswith(f"| {case.title} "))
    assert ["12.0", "≥ 15", "missed"] == cells(row)[1:4]
    assert ["0.50", "reached", "150", "reached"] == cells(row)[5:9]


def test_the_cost_of_exactly_once_is_that_of_the_rate():
    """At most a twentieth is wanted."""
    case = next(case for case in cases(10, 10) if case.key == COST)
    exactly = run(case, HEADRACE.title, 1.0)
    text = mirror_section([exactly, replace(exactly, exactly_once=False, seconds=9.0)])

    assert "0.90 times the rate, with 1.00 times the CPU" in text
    assert "missed" in text


def test_delays_are_a_table_of_their_own():
    """One line for each program."""
    one = Delayed(maker="headrace", median=0.5, p99=1.25, after_kill=12.0, percent=7.0)

    assert ["headrace", "0.50", "1.25", "7", "12.0"] == cells(
        mirror_section([one]).splitlines()[-1]
    )
    assert "" == mirror_section([])
