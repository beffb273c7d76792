"""A SQL step is validated as part of a connector, without Spark."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from headrace.plugins import PluginConnectorValidator, checked_worker
from headrace.task.sql.step import FrameTypes, SqlStage, SqlStep
from plugins.judged import WORKER, errors, run_spec, validator

FILES = {"name": "c", "connector.class": "files", "topic": "t", "files.path": "/nowhere"}
SQL = "headrace.transforms.SparkSql"


def reported(changes: Mapping[str, str], **worker: str) -> dict[str, list[str]]:
    """What is wrong with a connector of files that has a SQL step, and *changes*."""
    settings = {key.replace("_", "."): value for key, value in worker.items()}
    step = {"transforms": "sql", "transforms.sql.type": SQL, "transforms.sql.where": "a > 1"}
    return errors(validator(settings).validate({**FILES, **step, **changes}))


def test_a_step_of_expressions_is_taken() -> None:
    """Among other transformations, by its short name, too."""
    other = {"transforms.h.type": "HoistField$Value", "transforms.h.field": "f"}
    short = {"transforms": "h,sql", "transforms.sql.type": "SparkSql"}

    assert {} == reported({**other, **short, "transforms.sql.select": "a, concat(b, ',') AS c"})


@pytest.mark.parametrize(
    ("changes", "key", "sentence"),
    [
        (
            {"transforms": "sql,two", "transforms.two.type": SQL, "transforms.two.where": "b"},
            "transforms.two.type",
            "can have only one SparkSql, and sql is one already",
        ),
        (
            {
                "transforms.sql.predicate": "p",
                "predicates": "p",
                "predicates.p.type": "RecordIsTombstone",
            },
            "transforms.sql.predicate",
            "takes no predicate: filter records with where",
        ),
        ({"transforms.sql.where": ""}, "transforms.sql.select", "set select, where or function"),
        ({"transforms.sql.select": "a, f(b"}, "transforms.sql.select", "A ) is missing."),
        ({"transforms.sql.function": "os:getcwd"}, "transforms.sql.function", "plugin.modules"),
        (
            {"transforms": "f,sql", "transforms.f.type": "Filter"},
            "transforms.sql.type",
            "Put SparkSql before these transformations",
        ),
        (
            {"connector.class": "FileStreamSource", "file": "/nowhere"},
            "transforms.sql.type",
            "FileStreamSourceConnector is polled",
        ),
    ],
)
def test_what_cannot_work_is_reported_without_spark(
    changes: dict[str, str], key: str, sentence: str
) -> None:
    """At the key that is to change."""
    found = reported(changes)

    assert ([key], [True]) == ([*found], [sentence in each for each in found[key]])


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("sql_authored:right", None),
        ("sql_authored.right", None),
        ("sql_authored:lacking", "sql_authored:lacking could not be loaded"),
        ("sql_authored:NUMBER", "sql_authored:NUMBER is not a function."),
    ],
)
def test_functions_of_modules_that_may_be_imported_are_looked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, sentence: str | None
) -> None:
    """They are not called: that takes a Spark session."""
    (tmp_path / "sql_authored.py").write_text("NUMBER = 1\ndef right(frame):\n    raise OSError\n")
    monkeypatch.syspath_prepend(tmp_path)

    found = reported({"transforms.sql.function": name}, plugin_modules="sql_authored")

    (sentences,) = found.values() or [[]]
    assert [True] * len(sentences) == [str(sentence) in each for each in sentences]
    assert (sentence is None) == (not sentences)


def test_what_spark_says_of_expressions_is_reported_at_their_keys() -> None:
    """Of records as the connector knows them; of settings that are wrong by themselves it is not asked."""
    asked = list[SqlStage]()

    def judge(stage: SqlStage) -> list[tuple[str, str]]:
        asked.append(stage)
        return [("where", "a >: Spark's sentence.")]

    step = {"transforms": "sql", "transforms.sql.type": "SparkSql", "transforms.sql.where": "a >"}
    judging = PluginConnectorValidator(checked_worker(WORKER), "g", sql=judge)

    found = errors(judging.validate({**FILES, **step}))
    judging.validate({**FILES, **step, "transforms.sql.select": "("})

    assert {"transforms.sql.where": ["a >: Spark's sentence."]} == found
    expected = SqlStep(where="a >", prefix="transforms.sql.")
    assert [SqlStage(step=expected, types=FrameTypes())] == asked


def test_a_warning_says_that_tolerance_does_not_apply_to_spark_sql(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Before anything starts: a value that cannot be cast stops such a connector all the same."""
    step = {"transforms": "sql", "transforms.sql.type": "SparkSql", "transforms.sql.where": "a"}
    validating = validator({})

    for tolerance in ("none", "all"):
        run_spec(validating, {**FILES, **step, "errors.tolerance": tolerance})

    assert 1 == sum("does not apply to SparkSql" in each for each in caplog.messages)
