"""Whether Spark takes a SQL step as it is asked: found out without a record, on a stand-in for the frame."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterator

import pyarrow as pa
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 (Spark's own way)
from pyspark.sql.types import BooleanType, DataType, StructType

from headrace.connect.config import Problem
from headrace.connect.errors import TaskFailedError
from headrace.slot.sql_step import SqlStep
from headrace.spark.answers import Answers
from headrace.spark.reasons import of_analysis
from headrace.spark.sql_function import FunctionError, with_function
from headrace.spark.sql_names import ROW, condition, expression, named, value_fields
from headrace.spark.sql_plan import refusal
from headrace.spark.sql_types import strange_fields

_known = Answers[tuple[Problem, ...]]()
_numbers = itertools.count()
_UNKNOWN_NAME = "[UNRESOLVED_COLUMN."
_NO_FIELDS = (
    "This value has no fields: of which type it is has to be known before it is read, for files by files.schema. "
    "Text is taken apart by from_json and get_json_object."
)
_OUR_NAME = re.compile(f", `{ROW}`|`{ROW}`, ")
_NARROW = "Between reading and writing, each row becomes one row, in its place."


def sql_problems(session: SparkSession, schema: StructType, step: SqlStep) -> tuple[Problem, ...]:
    """What is wrong with *step* for frames of *schema*: settings of SparkSql, each with a sentence. Runs nothing.

    Raises what Spark raises when it does not answer.
    """
    return _known.of(session, (schema.json(), step), lambda: _problems(session, schema, step))


def _problems(session: SparkSession, schema: StructType, step: SqlStep) -> tuple[Problem, ...]:
    frame = stand_in(session, schema)
    if step.function is not None:
        problems = tuple(_of_function(frame, step.function))
        if problems:
            return problems
        frame = with_function(frame, step.function)
    return tuple(_of_expressions(frame, step))


def stand_in(session: SparkSession, schema: StructType) -> DataFrame:
    """A frame of *schema* to ask Spark about; to run it is an error."""
    # None like another's: Spark takes a plan for one that a function has had cached if they are alike.
    number = next(_numbers)
    return session.range(number, number + 1, 1, 1).mapInArrow(_never, schema)


def _never(_: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    raise FunctionError.of_action()


def _of_function(frame: DataFrame, path: str) -> Iterator[Problem]:
    try:
        made = with_function(frame, path)
        told = _refused(made) or _strange(made.schema["value"].dataType)
    except AnalysisException as error:
        told = of_analysis(error)
    except TaskFailedError as error:
        told = str(error)
    if told is not None:
        yield "function", f"{path}: {told}"


def _of_expressions(frame: DataFrame, step: SqlStep) -> Iterator[Problem]:
    try:
        rows = named(frame)
    except ValueError as error:
        yield "select" if step.select else "where", str(error)
        return
    has_fields = value_fields(frame) is not None
    if step.where is not None:
        told = _of_condition(rows, step.where)
        if told is not None:
            yield "where", f"{step.where}: {_with_advice(told, has_fields=has_fields)}"
    if step.select:
        for told in _of_select(rows, step.select, has_fields=has_fields):
            yield "select", _with_advice(told, has_fields=has_fields)


def _with_advice(told: str, *, has_fields: bool) -> str:
    """What Spark *told*, and where fields come from when a name is not known and the value has none."""
    return told if has_fields or _UNKNOWN_NAME not in told else f"{told} {_NO_FIELDS}"


def _of_condition(rows: DataFrame, text: str) -> str | None:
    # By itself first: what Spark says of syntax is to be about the user's text alone.
    told = _complaint(lambda: rows.select(F.expr(text)))
    if told is not None:
        return told
    columns = rows.select(F.expr(text)).columns
    if len(columns) != 1:
        return "It has to be one expression."
    if _complaint(lambda: rows.select(condition(text))) is not None:
        return (
            f"Something is missing behind {columns[0]}, or it is too much: a condition has no name."
        )
    kind = rows.select(condition(text)).schema[0].dataType
    if isinstance(kind, BooleanType):
        return None
    return f"Its type is {kind.simpleString()}, and it has to be boolean."


def _of_select(rows: DataFrame, items: tuple[str, ...], *, has_fields: bool) -> Iterator[str]:
    if not has_fields and any(each.startswith("*") for each in items):
        yield "*: It stands for the fields of the value, and this value has none. Name value."
        return
    if _complaint(lambda: rows.select(*map(expression, items))) is None:
        yield from _of_names(rows, items)
        return
    # All at once is quick; one by one tells which it is.
    for each in items:
        told = _complaint(lambda text=each: rows.select(expression(text)))
        if told is not None:
            yield f"{each}: {_of_syntax(rows, each) or told}"


def _of_syntax(rows: DataFrame, text: str) -> str | None:
    """What Spark says of *text* as it is, when it cannot be parsed."""
    told = _complaint(lambda: rows.select(F.expr(text)))
    return told if told is not None and told.startswith("[PARSE_") else None


def _of_names(rows: DataFrame, items: tuple[str, ...]) -> Iterator[str]:
    """What is wrong with the names and types of the fields that *items* make, each of which is right for itself."""
    shown = rows.select(*map(expression, items)).columns
    kind = rows.select(F.struct(*map(expression, items))).schema[0].dataType
    assert isinstance(kind, StructType)
    for name, text in zip(kind.names, shown, strict=True):
        if name != text:
            yield f"{text}: It has no name. Say {text} AS … ."
    for name in dict.fromkeys(each for each in shown if shown.count(each) > 1):
        yield f"{name}: There are two fields of this name."
    told = _strange(kind)
    if told is not None:
        yield told


def _complaint(made: Callable[[], DataFrame]) -> str | None:
    """Why what *made* makes is refused: by Spark, or because it is not done row by row."""
    try:
        return _refused(made())
    except AnalysisException as error:
        # Among the names that Spark proposes is one that is not for users.
        return _OUR_NAME.sub("", of_analysis(error))


def _refused(frame: DataFrame) -> str | None:
    found = refusal(frame)
    return None if found is None else f"This is {found}. {_NARROW}"


def _strange(kind: DataType) -> str | None:
    found = [f"{name} ({text})" for name, text in strange_fields(kind, "")]
    if not found:
        return None
    return f"Kafka Connect has no type for {', '.join(found)}. Cast it, such as to a string."
