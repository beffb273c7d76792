"""Settings of SparkSql, and the list of expressions that one of them is."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as some

from headrace.connect.errors import ConfigError, TaskFailedError
from headrace.connect.partition import SourcePartition
from headrace.connect.record import SourceRecord
from headrace.task.connector_spec import PluginChoice, StageChoice
from headrace.task.sql.step import SqlStep, sql_step
from headrace.transforms.spark_sql import SPARK_SQL, SparkSql, SparkSqlConfig, sql_items

EXPRESSIONS = (
    "a",
    "concat(a, ',', b) AS c",
    "'it''s, so' AS d",
    "'a \\' , b' AS e",
    '"x, y" AS f',
    "r'a\\' AS g",
    "`h, i` AS j",
    "m['k, l'][0] AS n",
    "(1, 2) AS o",
    "/* p, q */ 1 AS r",
    "1 -- s, '\n AS t",
    "bar'u, v'",
)


@given(some.lists(some.sampled_from(EXPRESSIONS), min_size=1))
def test_a_list_is_cut_between_expressions_only(items: list[str]) -> None:
    """Commas in calls, texts, names and comments belong to their expression."""
    assert tuple(items) == sql_items(" ,\n".join(items))


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("a,,b", "expression is missing between two commas"),
        ("a,", "expression is missing between two commas"),
        ("f(a, b", r"A \) is missing"),
        ("a], b", "A ] stands alone"),
        ("a, b as", "A name is missing after AS in b as"),
        ("(a], b", "A ] stands alone"),
        ("'a, b", "A ' stands alone"),
    ],
)
def test_a_list_that_cannot_be_cut_is_refused(text: str, sentence: str) -> None:
    """With what is missing."""
    with pytest.raises(ValueError, match=sentence):
        sql_items(text)


@pytest.mark.parametrize(
    ("settings", "key", "sentence"),
    [
        ({}, "select", "set select, where or function"),
        ({"where": " "}, "select", "set select, where or function"),
        ({"select": "a, (b"}, "select", "A ) is missing."),
        ({"function": "no path"}, "function", "as module:name"),
        ({"function": "name"}, "function", "as module:name"),
    ],
)
def test_wrong_settings_are_reported(settings: dict[str, str], key: str, sentence: str) -> None:
    """Each at its key, before Spark is asked."""
    ((found, reported),) = SparkSqlConfig.problems(settings)

    assert (key, True) == (found, sentence in reported)


def test_the_step_of_a_chain_is_what_its_settings_say() -> None:
    """Whatever stands before and after it."""
    asked = {"select": "a, f(b, c) AS d", "where": " a > 1 ", "function": "module.name"}
    other = StageChoice(transform=PluginChoice(class_name="other"))
    ours = StageChoice(transform=PluginChoice(class_name=SPARK_SQL, config=asked))

    found = sql_step((other, ours, other))

    assert SqlStep(select=("a", "f(b, c) AS d"), where="a > 1", function="module.name") == found
    assert None is sql_step((other,))


def test_no_record_goes_through_an_instance() -> None:
    """A data plane without Spark says so, and passes nothing on unchanged."""
    made = SparkSql()
    made.configure({"where": "a > 1"})
    record = SourceRecord(
        topic="t", value="v", source_partition=SourcePartition(p=1), source_offset={"o": 1}
    )

    with pytest.raises(TaskFailedError, match="runs in Spark"):
        made.apply(record)
    with pytest.raises(ConfigError):
        made.configure({})
