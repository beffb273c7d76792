"""A SQL step as columns of a DataFrame of frames: the names that expressions see, users' functions, where and select."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final, Self

from py4j.protocol import Py4JError
from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 (Spark's own way)
from pyspark.sql import types as t
from pyspark.sql.types import StructType

from headrace.class_path import function_at
from headrace.connect.errors import TaskFailedError
from headrace.spark.failures import full_text, in_short
from headrace.task.sql.frame_codec import RowKind
from headrace.task.sql.step import SqlStep

RECORD: Final = "record"
"""The column with all parts of a record, including those whose names are also names of fields."""
ROW: Final = "_headrace"
"""The column with the whole row of a frame."""
RESERVED: Final = (RECORD, ROW)
_PARTS: Final = ("key", "value", "headers", "timestamp", "topic", "partition")

_RUNS: Final = "It runs Spark (count, collect, show …): it may only define columns."
_PLAIN: Final = frozenset(
    [
        "tinyint",
        "smallint",
        "int",
        "bigint",
        "float",
        "double",
        "boolean",
        "string",
        "binary",
        "date",
        "time",
        "timestamp",
        "timestamp_ntz",
        "void",
    ]
)


def value_fields(frame: DataFrame) -> tuple[str, ...] | None:
    """The names of the value's fields, in order; ``None`` if it has none. Asks Spark for the schema."""
    kind = frame.schema["value"].dataType
    return tuple(kind.names) if isinstance(kind, StructType) else None


def named(frame: DataFrame) -> DataFrame:
    """*frame* as expressions see it: fields, parts of the record whose names are free, ``record``, and the row.

    Raises ``ValueError`` for a field with a reserved name.
    """
    fields = value_fields(frame) or ()
    refuse_reserved(fields)
    taken = {each.casefold() for each in fields}
    free = [_part(each).alias(each) for each in _PARTS if each not in taken]
    every = ["value.*"] if fields else []
    return frame.select(*every, *free, record().alias(RECORD), F.struct("*").alias(ROW))


def refuse_reserved(fields: tuple[str, ...]) -> None:
    """Raise ``ValueError`` if one of *fields* has a reserved name."""
    for each in fields:
        if each.casefold() in RESERVED:
            raise ValueError(
                f"The value has a field {each!r}, but this name stands for the whole record here. Rename the field "
                "before, with ReplaceField and renames."
            )


def record() -> Column:
    """All parts of the record of a frame's row."""
    return F.struct(*(_part(each).alias(each) for each in _PARTS))


def _part(name: str) -> Column:
    # Frames have milliseconds, SQL has a timestamp type.
    return F.timestamp_millis(F.col(name)) if name == "timestamp" else F.col(name)


def expression(text: str) -> Column:
    """The expression *text*; a leading ``*`` stands for the fields of the value, not for all columns.

    Raises what Spark raises for text that it cannot parse.
    """
    return F.expr(f"{ROW}.value.{text}" if text.startswith("*") else text)


def condition(text: str) -> Column:
    """The expression *text*, which must have no alias: otherwise a trailing word, even AND, would be taken for one.

    Raises what Spark raises for text that it cannot parse.
    """
    # The parenthesis is on a line of its own, because the text may end with a comment.
    return F.expr(f"({text}\n)")


def is_open(row: str = "") -> Column:
    """Whether the row is a record that was not dropped yet; *row* is the column with the row, if there is one.

    Expressions are evaluated only for such rows: for others they would fail on missing values.
    """
    return (_member(row, "kind") == F.lit(int(RowKind.RECORD))) & _member(row, "keep")


def has_value(row: str = "") -> Column:
    """Whether the record has a value; a tombstone stays one."""
    return _member(row, "value").isNotNull()


def with_fields(rows: DataFrame, *others: str) -> DataFrame:
    """The frame in :data:`ROW`, with the columns of *rows*, except *others* and the row, as value fields."""
    return put_back(rows, {"value": F.when(is_open(ROW) & has_value(ROW), value_of(rows, *others))})


def value_of(rows: DataFrame, *others: str) -> Column:
    """A struct of the columns of *rows*, except *others* and the row."""
    fields = [each for each in rows.columns if each not in (*others, ROW)]
    return F.struct(*(F.col(quoted(each)).alias(each) for each in fields))


def put_back(rows: DataFrame, changed: Mapping[str, Column]) -> DataFrame:
    """The frame in :data:`ROW`, with the *changed* columns replaced. Asks Spark for the schema."""
    names = rows.schema[ROW].dataType.names  # pyright: ignore[reportAttributeAccessIssue]
    return rows.select(*(changed.get(name, F.col(f"{ROW}.{name}")).alias(name) for name in names))


def quoted(name: str) -> str:
    """*name* quoted for Spark, whatever characters it contains. Pure."""
    return "`" + name.replace("`", "``") + "`"


def _member(row: str, name: str) -> Column:
    return F.col(f"{row}.{name}" if row else name)


class FunctionError(TaskFailedError):
    """A user's function failed, or returned something invalid."""

    @classmethod
    def of_action(cls) -> Self:
        """The error of a function that runs a Spark action."""
        return cls(_RUNS)


def with_function(frame: DataFrame, path: str) -> DataFrame:
    """*frame* with a value of the columns that the function at *path* returns.

    The function sees the value's fields (a value without fields as ``value``), ``record``, and the row, which it has
    to keep; all but the row are null for rows that are no record, or a dropped one. Raises :class:`FunctionError`,
    Spark's errors about its columns, and :class:`~headrace.connect.errors.TaskFailedError` when there is no such
    function.
    """
    return with_fields(returned(frame, path, if_open=_if_open), RECORD)


def returned(
    frame: DataFrame, path: str, *, if_open: Callable[[Column], Column] = lambda column: column
) -> DataFrame:
    """The columns that the function at *path* returns for *frame*; *if_open* is applied to the columns that it sees.

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
        raise FunctionError(f"It returned {type(made).__name__}, but must return a DataFrame.")
    return made


def _is_of_spark(error: Exception) -> bool:
    """Whether *error* may be about Spark itself, and so may be temporary, and not about the function."""
    of_arguments = isinstance(error, TypeError | ValueError | AttributeError | LookupError)
    return isinstance(error, Py4JError | PySparkException) and not of_arguments


def _refuse_columns(names: Sequence[str]) -> None:
    if ROW not in names:
        raise FunctionError(
            f"It dropped the column {ROW}, which carries the record's position. Add and change columns with "
            f"withColumn, remove them with drop, or include {ROW} in select."
        )
    fields = [each for each in names if each not in (RECORD, ROW)]
    if not fields:
        raise FunctionError("It returned no column for the value.")
    twice = sorted({each for each in fields if fields.count(each) > 1})
    if twice:
        raise FunctionError(f"It returned two columns with the same name: {', '.join(twice)}.")


def _refuse_another_row(given: DataFrame, made: DataFrame) -> None:
    # For example, F.when without "otherwise" makes a non-nullable column nullable.
    if made.schema[ROW] != given.schema[ROW]:
        raise FunctionError(
            f"It changed the column {ROW}, which carries the record's position and must be returned unchanged."
        )


def unsupported_fields(kind: t.DataType, name: str) -> Iterator[tuple[str, str]]:
    """The paths in *kind*, whose own path is *name*, with types that Kafka Connect does not have, and those types. Pure."""
    if isinstance(kind, t.StructType):
        for each in kind.fields:
            yield from unsupported_fields(
                each.dataType, f"{name}.{each.name}" if name else each.name
            )
    elif isinstance(kind, t.ArrayType):
        yield from unsupported_fields(kind.elementType, name)
    elif isinstance(kind, t.MapType):
        yield from unsupported_fields(kind.keyType, name)
        yield from unsupported_fields(kind.valueType, name)
    elif not _is_plain(kind):
        yield name, kind.simpleString()


def _is_plain(kind: t.DataType) -> bool:
    if isinstance(kind, t.DecimalType | t.CharType | t.VarcharType):
        return True
    # The name of a time is followed by its precision, that of text by its collation.
    return kind.simpleString().partition("(")[0].partition(" ")[0] in _PLAIN


def with_expressions(frame: DataFrame, step: SqlStep) -> DataFrame:
    """*frame* after the function, ``where`` and ``select`` of *step*, in this order.

    Raises what Spark raises for an expression that it refuses, and as :func:`with_function`.
    """
    changed = with_function(frame, step.function) if step.function else frame
    filtered = _filtered(changed, step.where) if step.where else changed
    return _selected(filtered, step.select) if step.select else filtered


def _filtered(frame: DataFrame, text: str) -> DataFrame:
    is_true = F.coalesce(condition(text), F.lit(False))  # noqa: FBT003 (a literal)
    keep = F.when(is_open(ROW), is_true).otherwise(F.col(f"{ROW}.keep"))
    return put_back(named(frame), {"keep": keep})


def _selected(frame: DataFrame, items: tuple[str, ...]) -> DataFrame:
    value = F.when(is_open(ROW) & has_value(ROW), F.struct(*map(expression, items)))
    return put_back(named(frame), {"value": value})
