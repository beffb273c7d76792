"""Rows of frames on their way through a SQL step: the names of their parts, users' functions, how they are put back."""

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

RECORD: Final = "record"
"""The column with all parts of a record, also of those whose names a field has taken."""
ROW: Final = "_headrace"
"""The column that carries the whole row of a frame."""
RESERVED: Final = (RECORD, ROW)
_PARTS: Final = ("key", "value", "headers", "timestamp", "topic", "partition")


def value_fields(frame: DataFrame) -> tuple[str, ...] | None:
    """The names of the value's fields, in their order; ``None`` when it has none. Asks Spark for the schema."""
    kind = frame.schema["value"].dataType
    return tuple(kind.names) if isinstance(kind, StructType) else None


def named(frame: DataFrame) -> DataFrame:
    """*frame* as expressions see it: fields, parts of the record whose names are free, ``record``, and the row.

    Raises ``ValueError`` with a sentence for a field with a name that is reserved.
    """
    fields = value_fields(frame) or ()
    refuse_reserved(fields)
    taken = {each.casefold() for each in fields}
    free = [_part(each).alias(each) for each in _PARTS if each not in taken]
    every = ["value.*"] if fields else []
    return frame.select(*every, *free, record().alias(RECORD), F.struct("*").alias(ROW))


def refuse_reserved(fields: tuple[str, ...]) -> None:
    """Raise ``ValueError`` with a sentence when one of *fields* is called as what is not the value's."""
    for each in fields:
        if each.casefold() in RESERVED:
            raise ValueError(
                f"The value has a field {each!r}, which is a name for the whole record here. Give it another "
                "one before, with ReplaceField and renames."
            )


def record() -> Column:
    """All parts of the record of a frame's row."""
    return F.struct(*(_part(each).alias(each) for each in _PARTS))


def _part(name: str) -> Column:
    # Frames count milliseconds, SQL has a type for moments.
    return F.timestamp_millis(F.col(name)) if name == "timestamp" else F.col(name)


def expression(text: str) -> Column:
    """What *text* says; a ``*`` at its beginning stands for the fields of the value, not for all columns there are.

    Raises what Spark raises for text that it does not understand.
    """
    return F.expr(f"{ROW}.value.{text}" if text.startswith("*") else text)


def condition(text: str) -> Column:
    """What *text* says, which is no expression with a name: a word behind it would be taken for one, also AND.

    Raises what Spark raises for text that it does not understand.
    """
    # On a line of its own: a comment may end the text.
    return F.expr(f"({text}\n)")


_RECORD_KIND = 0


def is_open(row: str = "") -> Column:
    """Whether the row is a record that nothing has dropped yet; *row* is the column that carries it, if one does.

    Expressions are evaluated behind this alone: elsewhere they would fail for what is not there.
    """
    return (_member(row, "kind") == F.lit(_RECORD_KIND)) & _member(row, "keep")


def has_value(row: str = "") -> Column:
    """Whether the record has a value; a tombstone stays one."""
    return _member(row, "value").isNotNull()


def with_fields(rows: DataFrame, *others: str) -> DataFrame:
    """The frame that :data:`ROW` carries; its value has the columns of *rows* as fields, not *others* nor the row."""
    return put_back(rows, {"value": F.when(is_open(ROW) & has_value(ROW), value_of(rows, *others))})


def value_of(rows: DataFrame, *others: str) -> Column:
    """A struct of the columns of *rows*, but for *others* and the row."""
    fields = [each for each in rows.columns if each not in (*others, ROW)]
    return F.struct(*(F.col(quoted(each)).alias(each) for each in fields))


def put_back(rows: DataFrame, changed: Mapping[str, Column]) -> DataFrame:
    """The frame that :data:`ROW` carries, with other columns where they are *changed*. Asks Spark for the schema."""
    names = rows.schema[ROW].dataType.names  # pyright: ignore[reportAttributeAccessIssue]
    return rows.select(*(changed.get(name, F.col(f"{ROW}.{name}")).alias(name) for name in names))


def quoted(name: str) -> str:
    """*name* as Spark takes it for one name, whatever is in it. Pure."""
    return "`" + name.replace("`", "``") + "`"


def _member(row: str, name: str) -> Column:
    return F.col(f"{row}.{name}" if row else name)


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


def strange_fields(kind: t.DataType, name: str) -> Iterator[tuple[str, str]]:
    """Where in *kind*, which is called *name*, there are types that Kafka Connect has no equal of, and which. Pure."""
    if isinstance(kind, t.StructType):
        for each in kind.fields:
            yield from strange_fields(each.dataType, f"{name}.{each.name}" if name else each.name)
    elif isinstance(kind, t.ArrayType):
        yield from strange_fields(kind.elementType, name)
    elif isinstance(kind, t.MapType):
        yield from strange_fields(kind.keyType, name)
        yield from strange_fields(kind.valueType, name)
    elif not _is_plain(kind):
        yield name, kind.simpleString()


def _is_plain(kind: t.DataType) -> bool:
    if isinstance(kind, t.DecimalType | t.CharType | t.VarcharType):
        return True
    # A time has its precision behind its name, text its collation.
    return kind.simpleString().partition("(")[0].partition(" ")[0] in _PLAIN
