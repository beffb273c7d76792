"""Checks, without a record, whether Spark accepts a SQL step, and which parts of values the step may make null."""

from __future__ import annotations

import itertools
import re
import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import replace
from typing import Any, Final, Generic, TypeVar
from weakref import WeakKeyDictionary

import pyarrow as pa
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 (Spark's own way)
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema
from pyspark.sql.types import BooleanType, DataType, StructType

from headrace.connect.config import Problem
from headrace.connect.errors import TaskFailedError
from headrace.spark.failures import of_analysis
from headrace.spark.sql_step import (
    RECORD,
    ROW,
    FunctionError,
    condition,
    expression,
    named,
    put_back,
    returned,
    unsupported_fields,
    value_fields,
    value_of,
    with_function,
)
from headrace.task.sql.spark_types import spark_type
from headrace.task.sql.step import FrameTypes, SqlStage, SqlStep

_OPERATOR: Final = re.compile(r"(?:\*\(\d+\) )?(\w+)")
# After the first line, an operator follows one of these; other lines continue an expression.
_BRANCH: Final = re.compile(r"[\s:]*[+:]- (?:\*\(\d+\) )?(\w+)")
_ROW_BY_ROW: Final = ("Project",)
_SOURCE: Final = ["MapInArrow", "Range"]
_TITLE: Final = "== Physical Plan =="

# What the operators mean to a user, by parts of the names of Spark's operators; the first match is reported.
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
    ("Filter", "a filter; use the setting where, which drops records and moves their offsets"),
    ("EvalPython|MapIn|FlatMap|ArrowUDTF|BatchEvalUDTF", "a Python function (UDF)"),
    ("CollectMetrics", "an observation"),
    ("InMemory", "a cache"),
    ("Scan|LocalTable|OneRowRelation|Range", "another source of data"),
    ("Coalesce|Exchange|Repartition", "a shuffle or another number of partitions"),
)


def refusal(frame: DataFrame) -> str | None:
    """What *frame* does besides transforming single rows of a Python function over ``range``, or ``None``.

    For example "a sort". Asks Spark for the plan, which runs nothing.
    """
    return refusal_of_plan(physical_plan(frame))


def physical_plan(frame: DataFrame) -> str:
    """The plan that Spark would run for *frame*, as EXPLAIN shows it; on a classic session and over Spark Connect."""
    (row,) = frame.sparkSession.sql("EXPLAIN SELECT * FROM {frame}", frame=frame).collect()
    return str(row[0])


def refusal_of_plan(plan: str) -> str | None:
    """See :func:`refusal`; *plan* is what EXPLAIN shows, or why there is none. Pure."""
    if _TITLE not in plan:
        reason = next(filter(None, map(str.strip, plan.splitlines())), "no reason given")
        return f"nothing that Spark can plan ({reason})"
    found = [each for each in operators(plan) if each not in _ROW_BY_ROW]
    others = found[: -len(_SOURCE)] if found[-len(_SOURCE) :] == _SOURCE else found
    if not others:
        return None
    return next(filter(None, (_meaning(each, others) for each in _MEANINGS)), ", ".join(others))


def _meaning(of: tuple[str, str], found: Sequence[str]) -> str | None:
    pattern, meaning = of
    return meaning if any(re.search(pattern, each) for each in found) else None


def operators(plan: str) -> Iterator[str]:
    """The names of the operators of *plan*, from the last that Spark executes to the first. Pure."""
    lines = [line for line in plan.splitlines() if line.strip() and not line.startswith("==")]
    for number, line in enumerate(lines):
        found = (_BRANCH if number else _OPERATOR).match(line)
        if found is not None:
            yield found[1]


Answer = TypeVar("Answer")

# A worker has few connectors with a SQL step, and each repeats the same questions.
_MOST = 32


class SessionCache(Generic[Answer]):
    """Caches the last answers of each session for as long as the session is referenced elsewhere. Any thread may ask.

    A question whose answer raises is not cached.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._of: WeakKeyDictionary[Any, OrderedDict[Hashable, Answer]] = WeakKeyDictionary()

    def of(self, session: Any, question: Hashable, ask: Callable[[], Answer]) -> Answer:  # noqa: ANN401 (any session)
        """The answer of *session* to *question*; *ask* is called if it is not known."""
        with self._lock:
            known = self._of.setdefault(session, OrderedDict())
            if question in known:
                known.move_to_end(question)
                return known[question]
        answer = ask()
        with self._lock:
            known = self._of.setdefault(session, OrderedDict())
            known[question] = answer
            if len(known) > _MOST:
                known.popitem(last=False)
        return answer


_known_problems = SessionCache[tuple[Problem, ...]]()
_numbers = itertools.count()
_UNKNOWN_NAME = "[UNRESOLVED_COLUMN."
_NO_FIELDS = (
    "This value has no fields: its type has to be known before it is read, for files by files.schema. "
    "Use from_json or get_json_object to parse text."
)
_OUR_NAME = re.compile(f", `{ROW}`|`{ROW}`, ")
_NARROW = "Between reading and writing, each row becomes one row, in its place."


def sql_problems(session: SparkSession, schema: StructType, step: SqlStep) -> tuple[Problem, ...]:
    """What is wrong with *step* for frames of *schema*: settings of SparkSql, each with a message. Runs nothing.

    Raises what Spark raises when it does not answer.
    """
    return _known_problems.of(
        session, (schema.json(), step), lambda: _problems(session, schema, step)
    )


def _problems(session: SparkSession, schema: StructType, step: SqlStep) -> tuple[Problem, ...]:
    frame = stand_in(session, schema)
    if step.function is not None:
        problems = tuple(_of_function(frame, step.function))
        if problems:
            return problems
        frame = with_function(frame, step.function)
    return tuple(_of_expressions(frame, step))


def stand_in(session: SparkSession, schema: StructType) -> DataFrame:
    """A frame of *schema* for questions to Spark; running it is an error."""
    # Each plan is unique: if a user's function caches a frame, Spark would use the cache for equal plans.
    number = next(_numbers)
    return session.range(number, number + 1, 1, 1).mapInArrow(_never, schema)


def _never(_: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    raise FunctionError.of_action()


def _of_function(frame: DataFrame, path: str) -> Iterator[Problem]:
    try:
        made = with_function(frame, path)
        reason = _refused(made) or _unsupported(made.schema["value"].dataType)
    except AnalysisException as error:
        reason = of_analysis(error)
    except TaskFailedError as error:
        reason = str(error)
    if reason is not None:
        yield "function", f"{path}: {reason}"


def _of_expressions(frame: DataFrame, step: SqlStep) -> Iterator[Problem]:
    try:
        rows = named(frame)
    except ValueError as error:
        yield "select" if step.select else "where", str(error)
        return
    has_fields = value_fields(frame) is not None
    if step.where is not None:
        reason = _of_condition(rows, step.where)
        if reason is not None:
            yield "where", f"{step.where}: {_with_advice(reason, has_fields=has_fields)}"
    if step.select:
        for reason in _of_select(rows, step.select, has_fields=has_fields):
            yield "select", _with_advice(reason, has_fields=has_fields)


def _with_advice(reason: str, *, has_fields: bool) -> str:
    """*reason*, with an explanation if it is about an unknown name and the value has no fields."""
    return reason if has_fields or _UNKNOWN_NAME not in reason else f"{reason} {_NO_FIELDS}"


def _of_condition(rows: DataFrame, text: str) -> str | None:
    # By itself first: Spark's syntax errors should quote only the user's text.
    reason = _error_of(lambda: rows.select(F.expr(text)))
    if reason is not None:
        return reason
    columns = rows.select(F.expr(text)).columns
    if len(columns) != 1:
        return "It must be one expression."
    if _error_of(lambda: rows.select(condition(text))) is not None:
        return f"Something is missing after {columns[0]}, or it is superfluous: a condition has no name."
    kind = rows.select(condition(text)).schema[0].dataType
    if isinstance(kind, BooleanType):
        return None
    return f"Its type is {kind.simpleString()}, but it must be boolean."


def _of_select(rows: DataFrame, items: tuple[str, ...], *, has_fields: bool) -> Iterator[str]:
    if not has_fields and any(each.startswith("*") for each in items):
        yield "*: It stands for the fields of the value, but this value has none. Use value instead."
        return
    if _error_of(lambda: rows.select(*map(expression, items))) is None:
        yield from _of_names(rows, items)
        return
    # Checking all at once is quick; one by one finds the expression that is wrong.
    for each in items:
        reason = _error_of(lambda text=each: rows.select(expression(text)))
        if reason is not None:
            yield f"{each}: {_of_syntax(rows, each) or reason}"


def _of_syntax(rows: DataFrame, text: str) -> str | None:
    """Spark's message about *text* itself if it cannot be parsed, or ``None``."""
    reason = _error_of(lambda: rows.select(F.expr(text)))
    return reason if reason is not None and reason.startswith("[PARSE_") else None


def _of_names(rows: DataFrame, items: tuple[str, ...]) -> Iterator[str]:
    """What is wrong with the names and types of the fields that *items* make; each item is valid on its own."""
    shown = rows.select(*map(expression, items)).columns
    kind = rows.select(F.struct(*map(expression, items))).schema[0].dataType
    assert isinstance(kind, StructType)
    for name, text in zip(kind.names, shown, strict=True):
        if name != text:
            yield f"{text}: It has no name. Write {text} AS … ."
    for name in dict.fromkeys(each for each in shown if shown.count(each) > 1):
        yield f"{name}: There are two fields with this name."
    reason = _unsupported(kind)
    if reason is not None:
        yield reason


def _error_of(make: Callable[[], DataFrame]) -> str | None:
    """Why the frame of *make* is refused: by Spark, or because it does not work row by row; else ``None``."""
    try:
        return _refused(make())
    except AnalysisException as error:
        # The names that Spark suggests include an internal one.
        return _OUR_NAME.sub("", of_analysis(error))


def _refused(frame: DataFrame) -> str | None:
    found = refusal(frame)
    return None if found is None else f"This is {found}. {_NARROW}"


def _unsupported(kind: DataType) -> str | None:
    found = [f"{name} ({text})" for name, text in unsupported_fields(kind, "")]
    if not found:
        return None
    return f"Kafka Connect has no type for {', '.join(found)}. Cast it, for example to a string."


_known_nulls = SessionCache[pa.DataType]()


def types_after_step(session: SparkSession, sql_stage: SqlStage) -> FrameTypes:
    """The frame types of *sql_stage*, with the fields that are still required after its step. Runs nothing.

    Called once per micro-batch. The types are returned unchanged if the step makes values of another type, which get
    a schema of their own, or if Spark refuses the step.
    """
    types, step = sql_stage.types, sql_stage.step
    if types.required is None or not (step.select or step.function):
        return types
    if sql_problems(session, from_arrow_schema(types.schema()), step):
        return types
    after_step = _known_nulls.of(
        session, sql_stage, lambda: _type_after(_required_stand_in(session, types), step)
    )
    return replace(types, after_step=after_step) if spark_type(after_step) == types.value else types


def _required_stand_in(session: SparkSession, types: FrameTypes) -> DataFrame:
    """A stand-in frame whose value is not null, and neither are the value's required fields."""
    schema = types.schema()
    value = pa.field("value", types.required, nullable=False)
    return stand_in(session, from_arrow_schema(schema.set(schema.get_field_index("value"), value)))


def _type_after(frame: DataFrame, step: SqlStep) -> pa.DataType:
    if step.function:
        made = returned(frame, step.function)
        frame = put_back(made, {"value": value_of(made, RECORD)})
    if step.select:
        frame = named(frame).select(F.struct(*map(expression, step.select)).alias("value"))
    return spark_type(to_arrow_schema(frame.select("value").schema)[0].type, as_required=True)
