"""What Spark would refuse of a SQL step, or would not do row by row: told before it runs."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import types as t

from headrace.spark.engine import SparkEngine
from headrace.spark.session import SparkSettings
from headrace.spark.sql_check import operators, refusal_of_plan, sql_problems
from headrace.spark.sql_step import unsupported_fields
from headrace.task.sql.step import FrameTypes, SqlStage, SqlStep
from spark.sql_frames import FIELDS, frame_schema, spark_schema

HERE = "spark.sql_functions"
NARROW = "Between reading and writing, each row becomes one row, in its place."


@pytest.fixture(scope="module")
def session(spark_engine: SparkEngine) -> SparkSession:
    """The session that all tests share."""
    return spark_engine.session()


def problems(session: SparkSession, step: SqlStep, value: pa.DataType = FIELDS) -> list[str]:
    """What is wrong with *step*, for values of the type *value*."""
    schema = spark_schema(session, frame_schema(value))
    return [f"{name}: {sentence}" for name, sentence in sql_problems(session, schema, step)]


@pytest.mark.spark
@pytest.mark.parametrize(
    ("item", "sentence"),
    [
        ("sum(a) AS s", "an aggregate"),
        ("row_number() OVER (ORDER BY a) AS n", "a window function"),
        ("explode(array(a, a)) AS e", "an explode"),
        ("(SELECT max(id) FROM range(3)) AS m", "an aggregate"),
        ("(SELECT 1) IN (SELECT id FROM range(3)) AS m", "a join or a subquery"),
    ],
)
def test_what_is_not_row_by_row_is_refused(session: SparkSession, item: str, sentence: str) -> None:
    """The operation is named, and the expression, among others that are right."""
    expected = [f"select: {item}: This is {sentence}. {NARROW}"]

    assert expected == problems(session, SqlStep(select=("a", item, "b")))


@pytest.mark.spark
@pytest.mark.parametrize(
    ("step", "sentence"),
    [
        (SqlStep(select=("a +",)), "select: a +: [PARSE_SYNTAX_ERROR] "),
        (SqlStep(select=("a, b",)), "select: a, b: [PARSE_SYNTAX_ERROR] "),
        (SqlStep(select=("c",)), "select: c: [UNRESOLVED_COLUMN.WITH_SUGGESTION] "),
        (SqlStep(select=("f(a) AS b",)), "select: f(a) AS b: [UNRESOLVED_ROUTINE] "),
        (SqlStep(select=("a + 1",)), "select: (a + 1): It has no name. Write (a + 1) AS"),
        (SqlStep(select=("a", "b AS a")), "select: a: There are two fields with this name."),
        (
            SqlStep(select=("array(INTERVAL 1 DAY) AS i",)),
            "select: Kafka Connect has no type for i",
        ),
        (SqlStep(where="a"), "where: a: Its type is int, but it must be boolean."),
        (SqlStep(where="sum(a) > 1"), "where: sum(a) > 1: This is an aggregate."),
        (
            SqlStep(where="b > "),
            "where: b > : [PARSE_SYNTAX_ERROR] Syntax error at or near end of input.",
        ),
        (SqlStep(where="a > 1 AND"), "where: a > 1 AND: Something is missing after AND, or"),
        (
            SqlStep(where="a > 1) OR (a < 0"),
            "where: a > 1) OR (a < 0: [PARSE_SYNTAX_ERROR] Syntax error at or near ')'.",
        ),
        (SqlStep(where="*"), "where: *: It must be one expression."),
    ],
    ids=str,
)
def test_what_spark_says_is_told_of_the_setting(
    session: SparkSession, step: SqlStep, sentence: str
) -> None:
    """In Spark's own words where it has any, on one line."""
    (found,) = problems(session, step)

    assert (sentence, False) == (found[: len(sentence)], "\n" in found)


@pytest.mark.spark
def test_all_that_is_wrong_is_told_at_once(session: SparkSession) -> None:
    """Of the condition, and of each expression."""
    step = SqlStep(select=("c", "a", "d"), where="e > 1")

    assert ["where: e > 1", "select: c", "select: d"] == [
        each.partition(": [")[0] for each in problems(session, step)
    ]


@pytest.mark.spark
def test_the_place_of_an_error_is_one_in_the_users_text(session: SparkSession) -> None:
    """Whatever stands for the star, and around a condition."""
    step = SqlStep(select=("* EXCEPT (",), where="a > (1")

    places = [re.findall(r"line \d+, pos \d+", each) for each in problems(session, step)]

    assert [["line 1, pos 6"], ["line 1, pos 2"]] == places


@pytest.mark.spark
def test_a_name_that_is_not_known_is_told_with_where_fields_come_from(
    session: SparkSession,
) -> None:
    """Where the value has none; no name of our own is proposed."""
    found = problems(session, SqlStep(select=("id",), where="id > 1"), pa.string())

    assert 2 == len(found)
    assert all("`record`" in each and "_headrace" not in each for each in found)
    assert all("has no fields" in each and "files.schema" in each for each in found)
    assert "has no fields" not in "".join(problems(session, SqlStep(select=("id",))))


@pytest.mark.spark
def test_a_star_needs_fields(session: SparkSession) -> None:
    """It does not stand for the other parts of a record."""
    (found,) = problems(session, SqlStep(select=("*",)), pa.string())

    assert "this value has none. Use value instead." in found


@pytest.mark.spark
@pytest.mark.parametrize("name", ["record", "Record", "_headrace"])
def test_fields_with_reserved_names_are_refused(session: SparkSession, name: str) -> None:
    """With what can be done: nothing would lead to the record otherwise."""
    fields = pa.struct([(name, pa.int32())])
    steps = (SqlStep(where="1 = 1"), SqlStep(function=f"{HERE}:doubled"))

    found = [each for step in steps for each in problems(session, step, fields)]

    assert [True, True] == [f"has a field {name!r}" in each for each in found]


@pytest.mark.spark
@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        (
            "filtered",
            "This is a filter; use the setting where, which drops records and moves their offsets.",
        ),
        ("ordered", "This is a sort."),
        ("shuffled", "This is a shuffle or another number of partitions."),
        ("merged", "This is a shuffle or another number of partitions."),
        ("summed", "This is an aggregate."),
        ("joined", "This is a join or a subquery."),
        ("limited", "This is a limit or an offset."),
        ("sampled", "This is a sample."),
        ("exploded", "This is an explode."),
        ("united", "This is a union."),
        ("elsewhere", "It changed the column _headrace"),
        ("rowless", "It changed the column _headrace"),
        ("sometimes_rowless", "It changed the column _headrace"),
        ("cached", "This is a cache."),
        ("exiting", "It called sys.exit('enough')."),
        ("in_python", "This is a Python function (UDF)."),
        ("mapped", "This is a Python function (UDF)."),
        ("without_row", "It dropped the column _headrace"),
        ("without_fields", "It returned no column for the value."),
        ("two_of_one_name", "It returned two columns with the same name: a."),
        ("counted", "It runs Spark (count, collect, show …)"),
        ("nothing", "It returned NoneType, but must return a DataFrame."),
        ("raising", "It raised KeyError: 'no such thing'"),
        ("misspelt", "[UNRESOLVED_COLUMN.WITH_SUGGESTION]"),
        ("spanning", "Kafka Connect has no type for span (interval day)."),
        ("lacking", f"{HERE}:lacking could not be loaded"),
    ],
)
def test_functions_that_may_not_be_are_refused(
    session: SparkSession, name: str, sentence: str
) -> None:
    """What they would do to the rows is seen in the plan, and the sentence names it."""
    (found,) = problems(session, SqlStep(function=f"{HERE}:{name}"))

    expected = f"function: {HERE}:{name}: {sentence}"
    assert expected == found[: len(expected)]


@pytest.mark.spark
def test_what_one_function_has_cached_is_not_held_against_another(session: SparkSession) -> None:
    """Of a cached frame Spark remembers the plan, and takes every plan like it for the cached one."""
    (refused,) = problems(session, SqlStep(function=f"{HERE}:cached"))
    other = problems(session, SqlStep(function=f"{HERE}:tripled"))

    assert ["This is a cache." in refused, []] == [True, other]


@pytest.mark.spark
def test_an_open_session_says_which_expressions_it_cannot_take(spark_engine: SparkEngine) -> None:
    """Without a record: it is asked for the columns that there would be."""
    spark_engine.session()
    types = FrameTypes(value=pa.struct([pa.field("a", pa.int64())]))
    step = SqlStep(select=("a", "b", "a +"), where="a > 1 AND (")

    found = spark_engine.sql_problems(SqlStage(step=step, types=types))

    expected = [
        ("where", "a > 1 AND (", "PARSE_SYNTAX_ERROR"),
        ("select", "b", "UNRESOLVED_COLUMN.WITH_SUGGESTION"),
        ("select", "a +", "PARSE_SYNTAX_ERROR"),
    ]
    assert expected == [
        (name, *re.findall(r"^(.*?): \[([A-Z_.]+)\]", text)[0]) for name, text in found
    ]


def test_no_session_is_opened_for_a_validation() -> None:
    """It would take long; the same is reported when the connector starts."""
    engine = SparkEngine(SparkSettings(master="spark://127.0.0.1:1"), slots=1)

    assert [] == list(engine.sql_problems(SqlStage(step=SqlStep(where="a >"), types=FrameTypes())))

    engine.close()


@pytest.mark.spark
def test_a_step_is_looked_at_once(session: SparkSession) -> None:
    """Each micro-batch asks again, and must not wait for Spark."""
    schema, step = spark_schema(session, frame_schema(FIELDS)), SqlStep(where="c > 42")

    first, second = (sql_problems(session, schema, step) for _ in range(2))

    assert first is second


PLAN = """== Physical Plan ==
*(2) Project [CASE WHEN (b#1 = a
Filter, with a line of its own) THEN 1 END AS c#2]
+- *(2) Project [b#1]
   +- MapInArrow read(id#0L)#1, [b#1], false
      +- *(1) Range (0, 1, step=1, splits=1)
"""


def test_operators_are_read_from_a_plan() -> None:
    """Lines within an expression are none."""
    assert ["Project", "Project", "MapInArrow", "Range"] == list(operators(PLAN))


@pytest.mark.parametrize(
    ("plan", "expected"),
    [
        (PLAN, None),
        (PLAN.replace("+- *(2) Project", "+- NewOperator"), "NewOperator"),
        (PLAN.replace("MapInArrow", "MapInPandas"), "a Python function (UDF)"),
        ("org.apache.AnalysisException: no", "nothing that Spark can plan (org.apache.Analysis"),
    ],
)
def test_only_projections_are_taken(plan: str, expected: str | None) -> None:
    """What is not known is refused by Spark's own name."""
    found = refusal_of_plan(plan)

    assert expected == (found and found[: len(expected or "")])


def types() -> Iterator[tuple[t.DataType, list[tuple[str, str]]]]:
    """Types, and what of them Kafka Connect does not have."""
    plain = (
        t.ByteType(),
        t.DecimalType(9, 2),
        t.VarcharType(3),
        t.TimestampNTZType(),
        t.TimeType(3),
    )
    yield from ((each, []) for each in plain)
    day = t.DayTimeIntervalType()
    yield t.StructType([t.StructField("i", t.ArrayType(day))]), [("s.i", day.simpleString())]
    yield t.MapType(t.StringType(), t.VariantType()), [("s", "variant")]


@pytest.mark.parametrize(("kind", "expected"), [*types()], ids=str)
def test_types_without_an_equal_are_found(
    kind: t.DataType, expected: list[tuple[str, str]]
) -> None:
    """However deep."""
    assert expected == list(unsupported_fields(kind, "s"))
