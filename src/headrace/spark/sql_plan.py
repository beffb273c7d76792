"""What Spark would do for a SQL step, and whether that is row by row: told by its plan."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final

from pyspark.sql import DataFrame

_OPERATOR: Final = re.compile(r"(?:\*\(\d+\) )?(\w+)")
# Behind the first line, an operator stands behind one of these; what else begins a line is within an expression.
_BRANCH: Final = re.compile(r"[\s:]*[+:]- (?:\*\(\d+\) )?(\w+)")
_ROW_BY_ROW: Final = ("Project",)
_SOURCE: Final = ["MapInArrow", "Range"]
_TITLE: Final = "== Physical Plan =="

# What people ask for, by a part of the names that Spark has for how it does it; the first that fits is told.
_MEANINGS: Final = (
    ("Join|CartesianProduct", "a join or a subquery"),
    ("Window", "a window function"),
    ("Aggregate", "an aggregate"),
    ("TakeOrdered|Limit", "a limit or an offset"),
    ("Sample", "a sample"),
    ("Generate|Expand", "an explode"),
    ("Union", "a union"),
    ("Subquery", "a subquery"),
    ("Sort", "a sort"),
    ("Filter", "a filter; the setting where drops records and moves their offsets"),
    ("EvalPython|MapIn|FlatMap|ArrowUDTF|BatchEvalUDTF", "a Python function (UDF)"),
    ("CollectMetrics", "an observation"),
    ("InMemory", "a cache"),
    ("Scan|LocalTable|OneRowRelation|Range", "another source of data"),
    ("Coalesce|Exchange|Repartition", "a shuffle or another number of partitions"),
)


def refusal(frame: DataFrame) -> str | None:
    """What *frame* does besides working row by row on what a Python function and ``range`` give it, if it does.

    Such as "a sort". Asks Spark for the plan, which runs nothing.
    """
    return refused_of(physical_plan(frame))


def physical_plan(frame: DataFrame) -> str:
    """The plan that Spark would run for *frame*, as EXPLAIN shows it; on a classic session and over Spark Connect."""
    (row,) = frame.sparkSession.sql("EXPLAIN SELECT * FROM {frame}", frame=frame).collect()
    return str(row[0])


def refused_of(plan: str) -> str | None:
    """See :func:`refusal`; *plan* is what EXPLAIN shows, or why there is none. Pure."""
    if _TITLE not in plan:
        told = next(filter(None, map(str.strip, plan.splitlines())), "nothing")
        return f"nothing that Spark can plan ({told})"
    found = [each for each in operators(plan) if each not in _ROW_BY_ROW]
    asked = found[: -len(_SOURCE)] if found[-len(_SOURCE) :] == _SOURCE else found
    if not asked:
        return None
    return next(filter(None, (_meaning(each, asked) for each in _MEANINGS)), ", ".join(asked))


def _meaning(of: tuple[str, str], asked: Sequence[str]) -> str | None:
    pattern, meaning = of
    return meaning if any(re.search(pattern, each) for each in asked) else None


def operators(plan: str) -> Iterator[str]:
    """The names of the operators of *plan*, from the last that Spark does to the first. Pure."""
    lines = [line for line in plan.splitlines() if line.strip() and not line.startswith("==")]
    for number, line in enumerate(lines):
        found = (_BRANCH if number else _OPERATOR).match(line)
        if found is not None:
            yield found[1]
