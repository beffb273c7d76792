"""The benchmark of the chain measures what its rows name."""

from __future__ import annotations

from benchmarks.chain import chain_figures


def test_both_ways_of_the_chain_are_measured():
    """Over lines that become the same in batches and record by record, or it would raise."""
    figures = chain_figures(500)

    assert ["without a chain", "in batches", "record by record"] == [
        each.title.rpartition(", ")[2] for each in figures
    ]
    assert all(each.value > 0 for each in figures)
