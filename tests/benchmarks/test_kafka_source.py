"""How reading Kafka is measured and reported."""

from __future__ import annotations

from collections import Counter

from benchmarks.kafka_source import (
    ALONE,
    CONSUME,
    HEADRACE,
    HEADRACE_WHOLE,
    OUTSIDE,
    SPARK,
    START,
    WORKS,
    Case,
    Measured,
    cases,
    schedule,
    shapes,
)
from benchmarks.kafka_source_report import kafka_source_section

WORK = WORKS[1].title


def run(reader: str, seconds: float, *, cpu: float = 1.0, shape: str = "100 B") -> Measured:
    """A million records read by one task."""
    work = OUTSIDE if reader in {ALONE, CONSUME} else WORK
    case = Case(shape=shape, tasks=1, work=work, reader=reader)
    return Measured(case=case, records=1_000_000, seconds=seconds, cpu_seconds=cpu)


def test_readers_that_are_compared_alternate():
    """Who came first in one round comes last in the next; nothing is left out or comes twice in a round."""
    compared = cases(shapes(200, 100))
    order = schedule(compared, 2)

    assert {2} == set(Counter(order).values())
    assert sum(map(len, compared)) * 2 == len(order)
    assert [ALONE, CONSUME] == [case.reader for case in order[:2]]
    assert [CONSUME, ALONE] == [case.reader for case in order[len(order) // 2 :][:2]]


def test_one_task_reads_half_of_a_topic():
    """Topics have two partitions."""
    (start, small, *_) = shapes(200, 100)

    assert (1, 100, 200) == (start.read_by(1), small.read_by(1), small.read_by(2))


def test_medians_without_the_start_are_compared():
    """Of all runs, for both readers their own start."""
    text = kafka_source_section(
        [
            *(run(HEADRACE, seconds) for seconds in (3.0, 99.0, 2.0)),
            run(HEADRACE, 1.0, cpu=0.5, shape=START.title),
            run(SPARK, 5.5),
            run(SPARK, 0.5, cpu=0.5, shape=START.title),
            run(HEADRACE_WHOLE, 6.0),
        ]
    )

    rows = [" ".join(line.split()) for line in text.splitlines()]
    assert f"| records/s, times Spark's own: {WORK} | 2.50 |" in rows
    assert f"| records/s without `columns`, times Spark's own: {WORK} | 0.83 |" in rows
    assert f"| CPU, of Spark's own: {WORK} | 1.00 |" in rows
    assert f"| {WORK}: {SPARK} | 200 |" in rows
    assert f"| {WORK}: {SPARK} | 0.50 | 0.50 |" in rows
    assert "reached everywhere." in text


def test_what_is_missed_is_named():
    """Slower than Spark's source, or more than half of what the client costs."""
    text = kafka_source_section(
        [run(HEADRACE, 2.0), run(SPARK, 1.9), run(ALONE, 1.0, cpu=0.6), run(CONSUME, 1.0)]
    )

    assert f"missed: {WORK} (100 B; 1 task), {OUTSIDE} (100 B; 1 task)." in text


def test_nothing_measured_is_no_section():
    """As everywhere in the report."""
    assert not kafka_source_section([])
