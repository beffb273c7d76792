"""Whether Spark takes a SQL step as it is asked, and which parts it may make null: found out without a record."""

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
from headrace.spark.sql_rows import (
    RECORD,
    ROW,
    FunctionError,
    condition,
    expression,
    named,
    put_back,
    returned,
    strange_fields,
    value_fields,
    value_of,
    with_function,
)
from headrace.task.sql.row_types import FrameTypes, travelling
from headrace.task.sql.step import SqlStage, SqlStep

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


Answer = TypeVar("Answer")

# A worker has few connectors with a step, and each asks the same again.
_MOST = 32


class Answers(Generic[Answer]):
    """Remembers the last answers of each session for as long as somebody else has that session. Any thread may ask.

    A question whose answer raises is asked again.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._of: WeakKeyDictionary[Any, OrderedDict[Hashable, Answer]] = WeakKeyDictionary()

    def of(self, session: Any, question: Hashable, ask: Callable[[], Answer]) -> Answer:  # noqa: ANN401 (any session)
        """The answer of *session* to *question*, which *ask* gets where it is not known."""
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


_known_nulls = Answers[pa.DataType]()


def types_after_step(session: SparkSession, between: SqlStage) -> FrameTypes:
    """What *between* carries, with what its step leaves required. Runs nothing, and is asked once for a micro-batch.

    Nothing is told where the step makes values of another type, which have a schema of their own, and where it is
    one that Spark refuses.
    """
    carries, step = between.carries, between.step
    if carries.read is None or not (step.select or step.function):
        return carries
    if sql_problems(session, from_arrow_schema(carries.schema()), step):
        return carries
    left = _known_nulls.of(session, between, lambda: _left(_stand_in(session, carries), step))
    return replace(carries, left=left) if travelling(left) == carries.value else carries


def _stand_in(session: SparkSession, carries: FrameTypes) -> DataFrame:
    """A frame that has a value in each row, and in the value all that is required."""
    schema = carries.schema()
    value = pa.field("value", carries.read, nullable=False)
    return stand_in(session, from_arrow_schema(schema.set(schema.get_field_index("value"), value)))


def _left(frame: DataFrame, step: SqlStep) -> pa.DataType:
    if step.function:
        made = returned(frame, step.function)
        frame = put_back(made, {"value": value_of(made, RECORD)})
    if step.select:
        frame = named(frame).select(F.struct(*map(expression, step.select)).alias("value"))
    return travelling(to_arrow_schema(frame.select("value").schema)[0].type, as_required=True)
