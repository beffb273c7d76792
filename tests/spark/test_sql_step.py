"""A SQL step in real Spark: which values it makes, which rows it keeps, and which it does not touch."""

from __future__ import annotations

import datetime as dt

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from headrace.connect.errors import TaskFailedError
from headrace.spark.engine import SparkEngine
from headrace.spark.job import applied
from headrace.spark.sql_check import operators, physical_plan
from headrace.task.sql.step import SqlStep
from spark.sql_frames import MOMENT, OTHER, frame, kept_of, left_of, row, values_of

pytestmark = [pytest.mark.spark, pytest.mark.timeout(300)]

AB = [row({"a": number, "b": text}) for number, text in ((1, "x"), (2, "y"), (None, "z"))]
HALF = "from_json(b, 'x INT').x > 1"


@pytest.fixture(scope="module")
def session(spark_engine: SparkEngine) -> SparkSession:
    """The session that all tests share."""
    return spark_engine.session()


def test_selected_expressions_become_the_fields(session: SparkSession) -> None:
    """They have the names that they are given, or those of the fields that they are."""
    expected = [{"c": 2, "b": "x"}, {"c": 3, "b": "y"}, {"c": None, "b": "z"}]

    assert expected == values_of(session, AB, select=("a + 1 AS c", "b"))


def test_rows_and_their_places_stay(session: SparkSession) -> None:
    """What is dropped is there, too: its offset has to move."""
    rows = [row({"a": number % 3, "b": "x"}, partition=number) for number in range(50)]

    left = left_of(applied(frame(session, rows), SqlStep(select=("a",), where="a = 1")))

    expected = [(number, b"%d" % number, number % 3 == 1) for number in range(50)]
    assert expected == [(each["partition"], each["offset"], each["keep"]) for each in left]


def test_only_what_is_true_is_kept(session: SparkSession) -> None:
    """False and null are not."""
    assert [False, True, False] == kept_of(session, AB, "a > 1 -- and more")


def test_what_is_not_kept_has_no_value_behind_a_select(session: SparkSession) -> None:
    """Its fields are not computed."""
    assert [None, {"a": 2}, None] == values_of(session, AB, select=("a",), where="a > 1")


def test_without_a_select_values_stay(session: SparkSession) -> None:
    """Also those of what is dropped."""
    assert [each["value"] for each in AB] == values_of(session, AB, where="a > 1")


def test_rows_that_are_no_records_pass_untouched(session: SparkSession) -> None:
    """Neither their marks nor what they carry."""
    other = row(None, kind=OTHER, payload=b"n", keep=True)

    changed = left_of(applied(frame(session, [other]), SqlStep(select=("a",), where="a > 1")))

    kept = {"kind": OTHER, "payload": b"n", "keep": True, "timestamp": MOMENT, "value": None}
    assert kept == {name: changed[0][name] for name in kept}


@pytest.mark.parametrize(
    "step",
    [
        {"where": "CAST(b AS INT) > 0"},
        {"select": ("CAST(b AS INT) AS n", "CAST(b AS INT) + 1 AS m")},
        {"function": "spark.sql_functions:numbered"},
    ],
    ids=lambda step: next(iter(step)),
)
def test_expressions_see_records_only(session: SparkSession, step: dict[str, object]) -> None:
    """Neither rows of other kinds nor what has been dropped: they would fail for what they hold."""
    value = {"a": 0, "b": "no number"}
    rows = [row(value, kind=OTHER), row(value, keep=False), row({"a": 0, "b": "7"})]

    changed = left_of(applied(frame(session, rows), SqlStep(**step)))  # type: ignore[arg-type]

    assert [True, False, True] == [each["keep"] for each in changed]


def test_what_where_drops_is_not_selected(session: SparkSession) -> None:
    """So that a condition can keep an expression from what it cannot take."""
    rows = [row({"a": 0, "b": "no number"}), row({"a": 1, "b": "7"})]

    found = values_of(session, rows, select=("CAST(b AS INT) AS n",), where="a = 1")

    assert [None, {"n": 7}] == found


def test_null_values_stay_null(session: SparkSession) -> None:
    """A tombstone does not become a struct of nulls."""
    assert [None, {"n": 1}] == values_of(
        session, [row(None), AB[0]], select=("coalesce(a, 0) AS n",)
    )


def test_conditions_see_null_values(session: SparkSession) -> None:
    """So tombstones can be dropped, and kept."""
    assert [False, True] == kept_of(session, [row(None), AB[0]], "value IS NOT NULL")


def test_the_parts_of_a_record_have_names(session: SparkSession) -> None:
    """Beside the fields; the timestamp is a moment."""
    header = [{"key": "h", "value": b"1"}]
    rows = [row({"a": 1, "b": "x"}, key="k", partition=4, headers=header)]
    names = ("key", "headers[0].key AS header", "timestamp", "topic", "partition", "value.b AS c")

    (found,) = values_of(session, rows, select=names)

    moment = dt.datetime.fromtimestamp(MOMENT / 1e3, tz=dt.UTC)
    others = {"key": "k", "header": "h", "topic": "t", "partition": 4, "c": "x"}
    assert {**others, "timestamp": moment} == found


def test_fields_come_before_parts_of_the_record(session: SparkSession) -> None:
    """Where both have one name, whatever its case, ``record`` leads to the other."""
    fields = pa.struct([("Key", pa.string()), ("value", pa.int32()), ("topic", pa.string())])
    rows = [row({"Key": "field", "value": 5, "topic": "of field"}, key="of record")]
    names = (
        "key AS a",
        "record.key AS b",
        "value AS c",
        "record.topic AS d",
        "record.value.topic AS e",
    )

    found = values_of(session, rows, fields, select=names)

    assert [{"a": "field", "b": "of record", "c": 5, "d": "t", "e": "of field"}] == found


@pytest.mark.parametrize(
    ("item", "expected"),
    [
        ("*", {"a": 1, "b": "x"}),
        ("* EXCEPT (a)", {"b": "x"}),
        ("value.*", {"a": 1, "b": "x"}),
        ("record.value.*", {"a": 1, "b": "x"}),
    ],
)
def test_a_star_stands_for_all_fields(session: SparkSession, item: str, expected: object) -> None:
    """And not for the other parts of the record."""
    assert [expected] == values_of(session, AB[:1], select=(item,))


def test_names_may_hold_anything(session: SparkSession) -> None:
    """Dots, commas, and backticks."""
    fields = pa.struct([("a.b", pa.int32()), ("c`d", pa.int32())])
    rows = [row({"a.b": 1, "c`d": 2})]

    assert [{"a.b": 1, "e,f": 2}] == values_of(
        session, rows, fields, select=("`a.b`", "`c``d` AS `e,f`")
    )


def test_text_is_called_value(session: SparkSession) -> None:
    """Lines of JSON are taken apart by Spark's own functions."""
    rows = [row('{"a": 1, "b": "x"}')]
    names = ("from_json(value, 'a INT, b STRING').a AS a",)

    assert [{"a": 1}] == values_of(session, rows, pa.string(), select=names)


def test_all_of_it_is_row_by_row(session: SparkSession) -> None:
    """No struct is made on the way that is taken apart again: two projections, one for each expression."""
    step = SqlStep(select=("a", "record.key AS k", "timestamp"), where=HALF)

    plan = physical_plan(applied(frame(session, AB), step))

    assert ["Project", "Project", "MapInArrow", "Range"] == list(operators(plan))
    assert "_headrace" not in plan


def test_what_a_function_returns_becomes_the_fields(session: SparkSession) -> None:
    """It may add and leave out columns."""
    expected = [{"a": 1, "twice": 2}, {"a": 2, "twice": 4}, {"a": None, "twice": None}]

    assert expected == values_of(session, AB, function="spark.sql_functions:doubled")


def test_a_function_comes_before_the_expressions(session: SparkSession) -> None:
    """What it adds can be selected, and asked for in the condition."""
    function = "spark.sql_functions.doubled"

    found = values_of(session, AB, function=function, where="twice > 2", select=("twice + 1 AS n",))

    assert [None, {"n": 5}, None] == found


def test_a_function_sees_the_record(session: SparkSession) -> None:
    """Under the name that it has in expressions."""
    found = values_of(session, AB[:1], function="spark.sql_functions:of_record")

    assert [{"a": 1, "b": "x", "from": "t"}] == found


def test_a_function_may_make_fields_of_text(session: SparkSession) -> None:
    """A value without fields is the column ``value``."""
    found = values_of(session, [row("four")], pa.string(), function="spark.sql_functions:parsed")

    assert [{"value": "four", "length": 4}] == found


def test_a_null_value_stays_null_behind_a_function(session: SparkSession) -> None:
    """As after a select."""
    assert [None] == values_of(session, [row(None)], function="spark.sql_functions:doubled")


def test_what_is_refused_names_the_setting(session: SparkSession) -> None:
    """As it stands in the connector's configuration, before a row is read."""
    message = r"\. transforms\.sql\.where: aa > 1: .*`aa` cannot be resolved"
    with pytest.raises(TaskFailedError, match=message):
        applied(frame(session, AB), SqlStep(where="aa > 1", prefix="transforms.sql."))
