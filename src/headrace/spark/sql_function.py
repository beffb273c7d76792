"""A user's function from DataFrame to DataFrame, as part of a SQL step."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Self

from py4j.protocol import Py4JError
from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 (Spark's own way)

from headrace.class_path import function_at
from headrace.connect.errors import TaskFailedError
from headrace.spark.reasons import full_text, in_short
from headrace.spark.sql_names import RECORD, ROW, record, refuse_reserved, value_fields
from headrace.spark.sql_rows import is_open, with_fields

_RUNS = "It runs Spark (count, collect, show …): it may only say what becomes of the columns."


class FunctionError(TaskFailedError):
    """A user's function failed, or returned what it may not."""

    @classmethod
    def of_action(cls) -> Self:
        """It has asked for rows."""
        return cls(_RUNS)


def with_function(frame: DataFrame, path: str) -> DataFrame:
    """*frame* with the columns as value that the function at *path* makes of it.

    The function sees the value's fields (a value that has none as ``value``), ``record``, and the row that it has
    to keep; all but the row are null where there is no record, or one that is dropped. Raises
    :class:`FunctionError`, what Spark says of its columns, and
    :class:`~headrace.connect.errors.TaskFailedError` when there is no such function.
    """
    return with_fields(returned(frame, path, if_open=_if_open), RECORD)


def returned(
    frame: DataFrame, path: str, *, if_open: Callable[[Column], Column] = lambda column: column
) -> DataFrame:
    """The columns that the function at *path* makes of *frame*'s, of which it sees what *if_open* leaves.

    Raises as :func:`with_function`.
    """
    given = _given(frame, if_open)
    made = _called(path, given)
    _refuse_columns(made.columns)
    _refuse_another_row(given, made)
    return made


def _if_open(column: Column) -> Column:
    return F.when(is_open(), column)


def _given(frame: DataFrame, if_open: Callable[[Column], Column]) -> DataFrame:
    fields = value_fields(frame)
    try:
        refuse_reserved(fields or ())
    except ValueError as error:
        raise FunctionError(str(error)) from error
    shown = frame.select(
        if_open(F.col("value")).alias("value"),
        if_open(record()).alias(RECORD),
        F.struct("*").alias(ROW),
    )
    return shown.select("value" if fields is None else "value.*", RECORD, ROW)


def _called(path: str, given: DataFrame) -> DataFrame:
    function = function_at(path)
    try:
        made = function(given)
    except SystemExit as error:
        raise FunctionError(f"It called sys.exit({error.code!r}).") from error
    except Exception as error:
        if _RUNS in full_text(error):
            raise FunctionError.of_action() from error
        if isinstance(error, AnalysisException) or _is_of_spark(error):
            raise
        raise FunctionError(f"It raised {type(error).__name__}: {in_short(error)}") from error
    if not isinstance(made, DataFrame):
        raise FunctionError(f"It returned {type(made).__name__}, and has to return a DataFrame.")
    return made


def _is_of_spark(error: Exception) -> bool:
    """Whether *error* may be about Spark itself, which can be tried again, and not about what the function says."""
    of_arguments = isinstance(error, TypeError | ValueError | AttributeError | LookupError)
    return isinstance(error, Py4JError | PySparkException) and not of_arguments


def _refuse_columns(names: Sequence[str]) -> None:
    if ROW not in names:
        raise FunctionError(
            f"It left out the column {ROW}, which carries the record's place. Add and change columns with "
            f"withColumn, leave out with drop, or name {ROW} among those that it selects."
        )
    fields = [each for each in names if each not in (RECORD, ROW)]
    if not fields:
        raise FunctionError("It left no column for the value.")
    twice = sorted({each for each in fields if fields.count(each) > 1})
    if twice:
        raise FunctionError(f"It returned two columns of one name: {', '.join(twice)}.")


def _refuse_another_row(given: DataFrame, made: DataFrame) -> None:
    # Without "otherwise", F.when makes a column that may be null of one that may not.
    if made.schema[ROW] != given.schema[ROW]:
        raise FunctionError(
            f"It replaced the column {ROW}, which carries the record's place and has to come back as it was given."
        )
