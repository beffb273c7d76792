"""The benchmark's rows, ratios and report."""

from __future__ import annotations

from collections import Counter

import pytest
from benchmarks.measuring import Measurement
from benchmarks.report import markdown_table, report
from benchmarks.results import Results, ratios
from benchmarks.rows import PAIR, ROWS, chosen, schedule

MIB = 1024 * 1024


def run_at(rate: float, *, cpu: float = 1.0, slot_mib: int = 200) -> Measurement:
    """A run of a million records at *rate*, with *cpu* seconds per million."""
    return Measurement(
        records=1_000_000,
        start_seconds=8.0,
        start_cpu_seconds=12.0,
        seconds=1_000_000 / rate,
        cpu_seconds=cpu,
        transactions=1,
        peak_rss_bytes=700 * MIB,
        peak_slot_rss_bytes=slot_mib * MIB,
    )


def test_keys_are_unique():
    """A key on the command line means one row."""
    assert [1] == list({*Counter(row.key for row in ROWS).values()})


def test_rows_are_chosen_by_pattern():
    """Several patterns add up, in the table's order."""
    assert ["limit-1", "limit-2", "connect-alo"] == [
        row.key for row in chosen(["connect-alo", "limit-?"])
    ]


def test_pairs_alternate_and_turn_round():
    """Both promises are measured in turns, each first in every other pair."""
    exactly, at_least = PAIR

    assert ["x", exactly, at_least, at_least, exactly] == schedule(
        [exactly, "x", at_least], pairs=2
    )


def test_half_a_pair_runs_once():
    """Without its other half there is nothing to pair."""
    assert [PAIR[0]] == schedule([PAIR[0]], pairs=7)


def test_tables_line_up():
    """Figures are aligned to the right, also for who reads the plain text."""
    assert ("|     | rate |\n| --- | ---: |\n| one |    7 |\n| two | 1234 |") == markdown_table(
        ("", "rate"), (("one", "7"), ("two", "1234"))
    )


def test_ratios_without_a_goal_are_told_and_not_judged():
    """What no one wants to reach is neither reached nor missed; an empty column is still one."""
    text = report(Results({"jsonl-s3-eos-1": [run_at(2e5)], "download": [run_at(8e5)]}))

    assert "of the bare download |     0.25 |        |     |" in text
    assert "| -----: | --: |" in text


def test_ratios_need_both_rows():
    """What was not measured has no ratio."""
    measured = Results({"jsonl-eos-1": [run_at(6e5)], "limit-1": [run_at(8e5)]})

    assert [0.75] == [round(each.value, 6) for each in ratios(measured)]


def test_the_goal_of_csv_is_the_one_of_its_notes():
    """The first one was higher."""
    measured = Results({"csv-eos-1": [run_at(4e5)], "limit-csv-1": [run_at(1e6)]})

    (ratio,) = ratios(measured)

    assert (0.35, True) == (ratio.wanted, ratio.reached)


def test_best_of_connect_is_the_faster_row():
    """Whichever of Kafka Connect's exactly-once rows is faster is its best; less CPU is better."""
    measured = Results(
        {
            "lines-eos-1": [run_at(6e5, cpu=2.0)],
            "connect-eos": [run_at(1e5, cpu=8.0)],
            "connect-eos-interval": [run_at(2e5, cpu=5.0)],
        }
    )

    assert [(6.0, True), (3.0, True), (0.25, True), (0.4, False)] == [
        (round(each.value, 6), each.reached) for each in ratios(measured)
    ]


def test_cost_is_the_median_of_pairs():
    """The ratio is taken pair by pair, not between the rows' medians."""
    measured = Results(
        {PAIR[0]: [run_at(90), run_at(200), run_at(100)], PAIR[1]: [run_at(100)] * 3}
    )
    cost = measured.cost_of_exactly_once()

    assert cost is not None
    assert (1.0, 0.9, 2.0) == tuple(round(x, 6) for x in (cost.median, cost.low, cost.high))


def test_report_of_little():
    """One row makes a table, and no section that it has no figures for."""
    text = report(Results({"limit-1": [run_at(723_456)]}))

    assert ("723,456" in text, "Ratios" in text, "cost" in text) == (True, False, False)


def test_memory_over_sizes():
    """Both peaks are shown with the files' sizes, and whether the bounds hold."""
    small = {"jsonl-eos-1-small": [run_at(1e5, slot_mib=180)]}

    def shown(slot_mib: int) -> str:
        return report(Results({**small, "jsonl-eos-1": [run_at(1e5, slot_mib=slot_mib)]}))

    assert "at most 180 MiB with a file of 1,000,000 records" in shown(181)
    assert "181 MiB with one of 1,000,000. Wanted: less than 10% more, and" in shown(181)
    assert shown(181).endswith("under 300 MiB; reached.")
    assert shown(200).endswith("under 300 MiB; missed.")
    assert shown(301).endswith("under 300 MiB; missed.")


@pytest.mark.parametrize(
    ("rates", "verdict"),
    [
        ([96, 97, 98, 99, 100, 101, 102], "reached"),
        ([80, 81, 82, 83, 84, 85, 94], "missed"),
        ([90, 97, 98, 99, 100, 101, 102], "the interval does not settle it"),
        ([96, 97], "too few pairs to say"),
    ],
)
def test_cost_is_judged_by_its_interval(rates: list[float], verdict: str):
    """A median on the right side is not enough while its interval reaches over the bound."""
    runs = {PAIR[0]: list(map(run_at, rates)), PAIR[1]: [run_at(100)] * len(rates)}

    assert f"; {verdict}." in report(Results(runs))
