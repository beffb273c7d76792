"""What of a value stays required after a SQL step, as Spark says without a record."""

from __future__ import annotations

import gc
import weakref

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from headrace.spark.engine import SparkEngine
from headrace.spark.sql_check import SessionCache, types_after_step
from headrace.task.sql.spark_types import spark_type
from headrace.task.sql.step import FrameTypes, SqlStage, SqlStep

READ = pa.struct(
    [
        pa.field("a", pa.utf8(), nullable=False),
        pa.field("b", pa.utf8()),
        pa.field("n", pa.int32(), nullable=False),
        pa.field("s", pa.struct([pa.field("x", pa.utf8(), nullable=False)]), nullable=False),
        pa.field("l", pa.list_(pa.field("item", pa.utf8(), nullable=False)), nullable=False),
    ]
)


@pytest.fixture(scope="module")
def session(spark_engine: SparkEngine) -> SparkSession:
    """The session that all tests share."""
    return spark_engine.session()


def left(session: SparkSession, step: SqlStep) -> set[str] | None:
    """The parts that may be null, or ``None`` where nothing is known."""
    types = FrameTypes(value=spark_type(READ), required=READ)
    found = types_after_step(session, SqlStage(step=step, types=types)).after_step
    return None if found is None else set(nullable(found, ""))


def nullable(kind: pa.DataType, prefix: str) -> list[str]:
    """The paths of what may be null in *kind*."""
    parts = list(kind) if pa.types.is_struct(kind) else []
    parts += [kind.value_field] if pa.types.is_list(kind) else []
    mine = [f"{prefix}{each.name}" for each in parts if each.nullable]
    return mine + [path for each in parts for path in nullable(each.type, f"{prefix}{each.name}.")]


@pytest.mark.spark
@pytest.mark.timeout(300)
@pytest.mark.parametrize(
    ("items", "expected"),
    [
        (("*",), {"b"}),
        (("a", "b", "n", "s", "l"), {"b"}),
        (("value.*",), {"b"}),
        (("record.value.*",), {"b"}),
        (("nullif(a, 'x') AS a", "b", "n", "s", "l"), {"a", "b"}),
        (("upper(a) AS a", "coalesce(b, '') AS b", "n + 1 AS n", "s", "l"), set()),
        (("b AS a", "a AS b", "n", "s", "l"), {"a"}),
        (("a", "b", "try_cast(a AS INT) AS n", "s", "l"), {"b", "n"}),
        (("a", "b", "n", "named_struct('x', b) AS s", "l"), {"b", "s.x"}),
        (("a", "b", "n", "IF(n > 1, s, NULL) AS s", "array(b) AS l"), {"b", "s", "l.item"}),
    ],
)
def test_what_an_expression_may_make_null_is_told(
    session: SparkSession, items: tuple[str, ...], expected: set[str]
) -> None:
    """What is passed on stays as it was read."""
    assert expected == left(session, SqlStep(select=items))


@pytest.mark.spark
@pytest.mark.timeout(300)
@pytest.mark.parametrize(
    ("step", "expected"),
    [
        (SqlStep(function="spark.sql_functions:as_it_is"), {"b"}),
        (SqlStep(function="spark.sql_functions:sometimes_null"), {"a", "b"}),
        (SqlStep(function="spark.sql_functions:sometimes_null", select=("*",)), {"a", "b"}),
        (SqlStep(where="a > ''"), None),
        (SqlStep(select=("a",)), None),
        (SqlStep(select=("no_such",)), None),
    ],
    ids=str,
)
def test_functions_are_told_of_and_steps_that_make_other_types_are_not(
    session: SparkSession, step: SqlStep, expected: set[str] | None
) -> None:
    """A condition changes no value; a value of another type has a schema of its own."""
    assert expected == left(session, step)


class Session:
    """Stands for a session."""


def test_a_session_that_no_one_has_is_not_kept_by_its_answers() -> None:
    """A worker opens others over time."""
    answers, session = SessionCache[int](), Session()
    gone = weakref.ref(session)

    assert [1, 1] == [answers.of(session, "q", lambda value=value: value) for value in (1, 2)]
    del session
    gc.collect()

    assert None is gone()


def test_the_answers_of_one_session_are_not_those_of_another() -> None:
    """They may know other functions."""
    answers, sessions = SessionCache[int](), (Session(), Session())

    assert [0, 1] == [answers.of(each, "q", lambda n=n: n) for n, each in enumerate(sessions)]


def test_old_answers_are_forgotten() -> None:
    """The least recently asked first."""
    answers, session = SessionCache[int](), Session()
    for question in range(40):
        answers.of(session, question, lambda: 1)
        answers.of(session, 0, lambda: 1)

    assert [1, 2] == [answers.of(session, question, lambda: 2) for question in (0, 1)]
