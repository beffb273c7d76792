"""Rows of frames on their way through a SQL step: which of them expressions may touch, and how they are put back."""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 (Spark's own way)

from headrace.spark.sql_names import ROW

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
